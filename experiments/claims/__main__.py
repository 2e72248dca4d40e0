from experiments.claims import claims

claims.main()
