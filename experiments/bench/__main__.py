from experiments.bench import bench

bench.main()
