"""View unattempted."""


def test_reason_of_each_task(rows, task, move, run):
    assert rows(
        "SELECT key, prefix, reason, last_state FROM unattempted",
        *(task(key) for key in ("ran-1", "late-1", "next-1", "dropped-1", "unused-1")),
        task("known-1", state="memory"),
        task("held-1", state="queued"),
        *run("ran-1", 1.0, 2.0),
        move(1.0, "late-1", "released>waiting"),
        move(1.0, "next-1", "released>waiting"),
        move(3.0, "next-1", "waiting>erred", "task-erred-3.0"),
        move(9.0, "next-1", "erred>forgotten"),
        move(1.0, "dropped-1", "released>waiting"),
        move(4.0, "dropped-1", "waiting>released", "client-releases-keys-4.0"),
    ) == [
        ("late-1", "late", "waiting at the end", "waiting"),
        ("next-1", "next", "a dependency failed", "forgotten"),
        ("dropped-1", "dropped", "cancelled", "released"),
        ("unused-1", "unused", "not needed", "released"),
        ("known-1", "known", "result known before", "memory"),
        ("held-1", "held", "waiting at the end", "queued"),
    ]
