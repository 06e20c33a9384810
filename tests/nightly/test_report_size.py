"""The size of a report does not grow with the run."""

from roast_analyze.report import data, page


def test_the_size_of_the_page_does_not_grow_with_the_run(open_trace, task, run, worker, chunk):
    def of(tasks):
        records = [worker("w1")]
        for i in range(tasks):
            key = f"P-{i:06}-{'long' * 50}"
            identity = {"dataset": f"D{i % 3}", "filename": f"{'folder/' * 30}{i:06}.root"}
            branches = [{"branch": f"{'b' * 50}{i % 5000}", "compressed_bytes": i}]
            records += [
                task(key, span_id=f"{i % 5000}"),
                *run(key, i / 100, i / 100 + 0.009, run_id=i),
            ]
            records.append(chunk(key, entry_start=0, entry_stop=i, **identity))
            records.append(chunk(key, run_id=i, branches=branches, **identity))
            name = f"{'s' * 50}{i % 5000}"
            section = {"kind": "section", "t": 0.0, "key": key, "run_id": i, "name": name}
            records.append({**section, "start_t": 0.0, "stop_t": 1.0})
            span, about = f"{'s' * 50}{i % 5000}", {"t": i / 100, "span_id": f"{i % 5000}"}
            records.append({"kind": "span", "span_name": [span, span], **about})
            metric = {"worker": f"w{i % 5000}", "context": "execute", "prefix": span}
            metric |= {"activity": span, "unit": "seconds", "delta": 1e-3, **about}
            records.append({"kind": "fine_metric", **metric})
        trace = open_trace(*records, stop_t=tasks / 100)
        return len(page.render(page.build(data.query(trace))))

    few, many = of(6000), of(12_000)

    assert many < 1.02 * few
    assert many < 4_000_000
