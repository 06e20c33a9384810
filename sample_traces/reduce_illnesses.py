"""Write the traces of the tutorial from the runs of ``make illnesses`` in a folder.

To keep them small, profiles, fine metrics, wanted keys and the environment are left out.
"""

import json
import sys
import zlib
from pathlib import Path

import zstandard

TUTORIAL = Path(__file__).resolve().parent / "tutorial"
#: Recorded run of each trace.
RUNS = {
    "killed_workers": "killed_workers_of_chunks",
    "slow_file": "slow_file",
    "small_chunks": "chunks_too_small",
    "slow_worker": "slow_worker_of_chunks",
    "client_gaps": "client_gaps_of_chunks",
    "late_workers": "late_workers_of_chunks",
}
DROPPED = ("profile", "fine_metric", "environment", "wanted_keys")


def reduced(text: str) -> bytes:
    """Return the text of a trace without some kinds, which its trailer no longer counts."""
    *records, trailer = map(json.loads, text.splitlines())
    kept = [record for record in records if record["kind"] not in DROPPED]
    for kind in DROPPED:
        trailer["records_by_kind"].pop(kind, None)
    del trailer["crc32"]
    lines = "\n".join(json.dumps(record, separators=(",", ":")) for record in [*kept, trailer])
    checked = lines.removesuffix("}").encode()
    return checked + b',"crc32":%d}\n' % zlib.crc32(checked)


def main(folder: Path) -> None:
    for name, run in RUNS.items():
        # Paths of the recording machine become relative.
        text = (folder / f"{run}.jsonl").read_text().replace(f"{folder}/", "")
        path = TUTORIAL / f"{name}.jsonl.zst"
        path.write_bytes(zstandard.ZstdCompressor(19).compress(reduced(text)))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
