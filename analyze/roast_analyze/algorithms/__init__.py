"""Algorithms over Polars frames, independent of DuckDB: trees and comparisons of profiles."""
