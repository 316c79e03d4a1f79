"""How fast onepass is on this machine, compared with what a user would pick instead: python -m onepass.bench --help"""
