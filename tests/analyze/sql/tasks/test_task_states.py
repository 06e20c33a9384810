"""View task_states and macro task_states_at."""


def test_states_at_a_time(ask, task, move):
    found = ask(
        task("a"),
        task("b", t=0.7, state="memory"),
        move(1.0, "a", "released>waiting"),
        move(2.0, "a", "waiting>processing"),
        move(3.0, "a", "processing>memory"),
        # Submitted again after it was forgotten.
        move(5.0, "a", "memory>forgotten"),
        task("a", t=6.0),
        move(7.0, "a", "released>waiting"),
    )

    for source, states in {
        "task_states_at(0.5)": [("a", "released", 0.0)],
        "task_states_at(2.0)": [("b", "memory", 0.7), ("a", "processing", 2.0)],
        "task_states_at(4.0)": [("b", "memory", 0.7), ("a", "memory", 3.0)],
        "task_states_at(6.0)": [("b", "memory", 0.7), ("a", "released", 6.0)],
        "task_states": [("b", "memory", 0.7), ("a", "waiting", 7.0)],
    }.items():
        assert found(f"SELECT key, state, since_t FROM {source}") == states, source
