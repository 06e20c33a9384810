import pytest

from roast_analyze.report.public_sql import _PUBLIC, public_sql


def test_private_names_are_replaced_and_others_kept():
    assert public_sql("FROM _core_time, my_core_time, _core_time_x") == (
        "FROM core_time, my_core_time, _core_time_x"
    )


@pytest.mark.parametrize("name", [name for name in _PUBLIC if "(" not in name])
def test_the_public_sql_has_the_columns_of_the_private_one(open_trace, name):
    trace = open_trace()
    columns = {column: trace.sql(f"FROM {sql}").columns for column, sql in
               (("private", name), ("public", public_sql(name)))}  # fmt: skip

    # Those that the report uses; private tables have more.
    used = {"_task_runs": {"trace_id", "prefix", "whole_seconds"},
            "_task_threads": {"seconds"}, "_trace_range": {"trace_id", "start_t"},
            "_core_time": {"t", "use", "seconds"}}  # fmt: skip
    wanted = used.get(name, set(columns["private"]) - {"record", "place"})
    assert wanted <= set(columns["public"])
