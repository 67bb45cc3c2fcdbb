#!/usr/bin/env python3
"""Serve the generated model, or one that a package holds, with llama.cpp's own HTTP server, on 127.0.0.1 only.

Writes the model, starts the server, and prints one line "base_url=http://127.0.0.1:PORT/v1" on
stdout once it answers. Everything else goes to stderr. Serves until SIGTERM, SIGINT, the end of
--max-seconds or, with --until-eof, the end of stdin.
"""
import argparse
import glob
import importlib.util
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.request

import xllamacpp

sys.dont_write_bytecode = True
import make_tiny_gguf

START_SECONDS = 60


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--port", type=int, default=0, help="0: any free port")
    ap.add_argument("--ctx", type=int, default=16384, help="context of one slot, in tokens")
    ap.add_argument("--slots", type=int, default=4, help="requests served at the same time")
    ap.add_argument("--batch", type=int, default=2048, help="prompt tokens between two SSE events")
    ap.add_argument("--ping", type=int, default=30, help="seconds between SSE keep-alive comments")
    ap.add_argument("--api-key", help="require this bearer token")
    ap.add_argument("--no-think", action="store_true",
                    help="reason only where a request asks (chat_template_kwargs.enable_thinking)")
    ap.add_argument("--broken-calls", action="store_true",
                    help="the model breaks its tool calls: an error event in the middle of a stream")
    ap.add_argument("--package", help="serve the GGUF file in this Python package, with a prompt cache")
    ap.add_argument("--max-seconds", type=float, default=1800)
    ap.add_argument("--until-eof", action="store_true",
                    help="stop when stdin ends, so that no server outlives the program that started it")
    return ap.parse_args()


def parameters(args, model):
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.model_alias = {args.package or "tiny"}
    p.hostnames = ["127.0.0.1"]
    p.port = args.port
    p.n_ctx = args.ctx * args.slots
    p.n_parallel = args.slots
    p.n_batch = args.batch
    p.n_gpu_layers = 0
    p.fit_params = False
    # Two threads wait for each other, and on a busy machine they do little else.
    p.cpuparams.n_threads = 1
    p.cpuparams_batch.n_threads = 1
    p.n_threads_http = 4 + args.slots
    # Of the generated model each request computes its whole prompt, so that one seed gives one answer.
    p.cache_prompt = bool(args.package)
    p.cache_ram_mib = 0
    p.n_ctx_checkpoints = 0
    p.ui = False
    p.offline = True
    p.endpoint_metrics = True
    p.endpoint_slots = True
    p.sse_ping_interval = args.ping
    p.verbosity = 2
    p.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_DEEPSEEK
    if args.no_think:
        p.default_template_kwargs = {"enable_thinking": "false"}
    if args.api_key:
        p.api_keys = [args.api_key]
    return p


def model_in(package):
    spec = importlib.util.find_spec(package)
    files = glob.glob(os.path.join(os.path.dirname(spec.origin), "*.gguf")) if spec else []
    if len(files) != 1:
        sys.exit(f"the package {package} is not installed, or holds not one GGUF file: {files}")
    return files[0]


def wait_until_healthy(root, stop):
    deadline = time.monotonic() + START_SECONDS
    while not stop.is_set():
        try:
            with urllib.request.urlopen(root + "/health", timeout=2) as reply:
                if reply.status == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            sys.exit(f"the server did not become healthy in {START_SECONDS} s")
        time.sleep(0.05)


def stop_at_end_of_stdin(stop):
    def drain():
        while os.read(0, 4096):
            pass
        stop.set()

    threading.Thread(target=drain, daemon=True).start()


def main():
    args = arguments()
    stop = threading.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: stop.set())
    if args.until_eof:
        stop_at_end_of_stdin(stop)

    with tempfile.TemporaryDirectory(prefix="tiny-gguf-") as folder:
        if args.package:
            model = model_in(args.package)
        else:
            model = os.path.join(folder, "tiny.gguf")
            make_tiny_gguf.write(model, context=args.ctx, broken=args.broken_calls)
        server = xllamacpp.Server(parameters(args, model))
        wait_until_healthy(server.listening_address, stop)
    # The server holds the model open or mapped; its file is no longer needed.
    if not stop.is_set():
        print(f"base_url={server.listening_address}/v1", flush=True)
        stop.wait(args.max_seconds)

    # At once: closing in order would wait for open requests, and a client that never reads its
    # answer would keep the server alive.
    os._exit(0)


if __name__ == "__main__":
    main()
