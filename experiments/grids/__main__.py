from experiments.grids import run

run.main()
