"""View imports."""


def test_records_of_each_imported_file(rows):
    def imported(filename, **records):
        about = {"name": "darshan", "filename": filename, "source": filename, "value": {}}
        return {"kind": "import", "t": 1.0, "records_by_kind": records, **about}

    assert rows(
        "SELECT filename, records FROM imports",
        imported("a.darshan", io_file=2, io_segment=3),
        imported("b.darshan"),
    ) == [("a.darshan", 5), ("b.darshan", 0)]
