"""The answers of the server, over HTTP on this machine.

Addresses are relative, so that a proxy can serve them at any path:

====================  ===================================================
``./``                the list, which renews itself
``runs.json?since=N`` the runs that changed after version N of the list
``report-ID``         the report of a run, or a page that waits for it
``report-ID.json``    what is done for the report
``live-ID``           the progress of a run that is being recorded
``live-ID.json``      its numbers
====================  ===================================================
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from roast_analyze.server import pages
from roast_analyze.server.access import Access, Asked
from roast_analyze.server.kept import STAMP
from roast_analyze.server.worker import Job, Task, Worker

if TYPE_CHECKING:
    from roast_analyze.server.catalog import Catalog
    from roast_analyze.server.listing import Listed

#: The largest request: there is none with a body.
_REQUEST_BYTES: Final = 2**16

#: Bytes of a report that are written at once, so that other requests are answered between them.
_PART_BYTES: Final = 2**18

_ID: Final = "([0-9a-f]{16})"

#: Fields of all answers. Names in reports are those of the user's work: other pages, caches and
#: servers that are linked to must not learn them.
_FIELDS: Final = {
    "Cache-Control": "private, no-cache",
    "Content-Type": "text/html; charset=UTF-8",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass
class Served:
    """What the requests are answered from."""

    catalog: Catalog
    access: Access
    #: Process that writes reports.
    writer: Worker
    #: The report that was asked for last, of each run.
    jobs: dict[str, Job] = field(default_factory=dict)

    def job(self, run: Listed) -> Job:
        """Return the job that writes the report of a run, which is begun if necessary."""
        job = self.jobs.get(run.id)
        # A live run grows while its report is written.
        if job is None or (job.is_done and not job.error):
            task = Task(run.source, run.kept, run.title)
            job = Job(task, partial(self.catalog.learned, run))
            self.jobs[run.id] = job
            self.writer.add(job)
        return job


class _Handler(RequestHandler):
    def initialize(self, served: Served) -> None:
        self.served = served

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in _FIELDS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        access = self.served.access
        token = self.get_query_argument("token", "")
        cookie = self.get_cookie(access.cookie_name) or ""
        if refusal := access.refusal(Asked(self.request.headers, token, cookie)):
            self.set_status(403)
            self.set_header("Content-Type", "text/plain; charset=UTF-8")
            self.finish(f"403: {refusal}\n")
        elif token and not cookie:
            # Without a path, the browser sends it back to this folder of addresses alone, which
            # behind a proxy is not that of other users. It ends with the browser.
            self.set_cookie(
                access.cookie_name, access.token, path="", httponly=True, samesite="Strict"
            )

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(f"{status_code}: {self._reason}\n")

    def run_with(self, run_id: str) -> Listed | None:
        """Return a run of the list; without one, answer that there is none."""
        run = self.served.catalog.find(run_id)
        if run is None:
            self.set_status(404)
            self.html(pages.error_page("No such run", "The run is not in the list any more."))
        return run

    def html(self, page: pages.Html) -> None:
        """Answer with a page."""
        self.set_header("Content-Security-Policy", page.policy)
        self.finish(page.text)

    def json(self, value: object) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(orjson.dumps(value))


class _NotFound(_Handler):
    def get(self) -> None:
        self.send_error(404)


class _List(_Handler):
    def get(self) -> None:
        self.html(pages.list_page(self.served.catalog.name))


class _Runs(_Handler):
    def get(self) -> None:
        since = self.get_query_argument("since", "0")
        version = int(since) if since.isascii() and since.isdecimal() else 0
        catalog = self.served.catalog
        self.json({**catalog.changes(version), "hint": catalog.hint})


class _Live(_Handler):
    def get(self, run_id: str) -> None:
        if run := self.run_with(run_id):
            if run.live is None:
                self.redirect(f"report-{run_id}")
            else:
                self.html(pages.live_page(run.title, run_id))


class _LiveNumbers(_Handler):
    def get(self, run_id: str) -> None:
        if run := self.run_with(run_id):
            self.json({"is_live": run.live is not None, **run.progress})


class _Report(_Handler):
    async def get(self, run_id: str) -> None:
        run = self.run_with(run_id)
        if run is None:
            return
        if run.error:
            self.html(pages.error_page(run.title, run.error))
            return
        # A live run changes while its report is written, so the report is asked for by stamp.
        stamp = self.get_query_argument("stamp", "")
        kept = run.kept.at(stamp) if STAMP.fullmatch(stamp) else run.kept
        try:
            read = kept.report.read_bytes
            text = await asyncio.get_running_loop().run_in_executor(None, read)
        except OSError:
            self._wait(run)
            return
        kept.touch()
        self.set_header("Content-Security-Policy", pages.REPORT_POLICY)
        self.set_header("Etag", f'"{kept.folder.name}-{kept.stamp}"')
        if self.check_etag_header():
            self.set_status(304)
            return
        for start in range(0, len(text), _PART_BYTES):
            self.write(text[start : start + _PART_BYTES])
            await self.flush()

    def _wait(self, run: Listed) -> None:
        job = self.served.job(run)
        if job.error:
            del self.served.jobs[run.id]  # the next request tries again
            self.html(pages.error_page(run.title, job.error))
        else:
            self.html(pages.waiting_page(run.title, run.id))


class _ReportState(_Handler):
    def get(self, run_id: str) -> None:
        job = self.served.jobs.get(run_id)
        if job is None:
            self.send_error(404)
            return
        self.json(
            {
                "stage": job.stage,
                "share": job.share,
                "is_done": job.is_done,
                "error": job.error,
                "report": f"report-{run_id}?stamp={job.task.kept.stamp}",
            }
        )


def application(served: Served) -> Application:
    """Return the answers to all addresses."""
    arguments = {"served": served}
    return Application(
        [
            (r"/", _List, arguments),
            (r"/runs\.json", _Runs, arguments),
            (rf"/live-{_ID}", _Live, arguments),
            (rf"/live-{_ID}\.json", _LiveNumbers, arguments),
            (rf"/report-{_ID}", _Report, arguments),
            (rf"/report-{_ID}\.json", _ReportState, arguments),
        ],
        default_handler_class=_NotFound,
        default_handler_args=arguments,
        log_function=lambda _handler: None,  # lines would contain the token
    )


async def serve(
    served: Served, sockets: list[socket.socket], begun: Callable[[], None]
) -> None:
    """Answer requests until the process is interrupted or terminated."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    server = HTTPServer(
        application(served), max_body_size=_REQUEST_BYTES, max_buffer_size=2 * _REQUEST_BYTES
    )
    server.add_sockets(sockets)
    begun()
    await ended.wait()
    server.stop()
    await server.close_all_connections()
