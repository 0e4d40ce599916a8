"""LangGraph as the benchmark of the product runs it: graphs with a SQLite checkpointer, each step durable before the next.

    langgraph_peer.py DATABASE MEASURE KIND COUNT AT_ONCE [PIPE]

MEASURE is `runs` (COUNT graphs of five nodes), `chain` or `fan` (one graph of COUNT nodes), or `first` (COUNT graphs, each
timed until its first node writes to PIPE). KIND is `noop`, or `spawn`: the node starts `true` and waits for it. Prints one
line: seconds, memory before and memory after in KiB; for `first`, only the median in seconds.
"""

import sqlite3
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

STEPS = 5


class State(TypedDict):
    """What a graph keeps: the number of nodes that have ended."""

    done: Annotated[int, lambda left, right: left + right]


def noop(_state):
    return {"done": 1}


def spawn(_state):
    subprocess.run(["/bin/sh", "-c", "true"], check=True, capture_output=True)
    return {"done": 1}


def writes_to(pipe):
    def node(_state):
        subprocess.run(["/bin/sh", "-c", 'echo > "$0"', pipe], check=True, capture_output=True)
        return {"done": 1}

    return node


def chain(saver, nodes):
    graph = StateGraph(State)
    names = [f"s{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes):
        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END]):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def fan(saver, node, count):
    graph = StateGraph(State)
    for number in range(count):
        graph.add_node(f"s{number}", node)
        graph.add_edge(START, f"s{number}")
        graph.add_edge(f"s{number}", END)
    return graph.compile(checkpointer=saver)


def invoke(graph, number, steps, at_once=1):
    config = {"configurable": {"thread_id": str(number)}, "max_concurrency": at_once, "recursion_limit": steps + 2}
    assert graph.invoke({"done": 0}, config, durability="sync")["done"] == steps


def resident():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def main(database, measure, kind, count, at_once, pipe=None):
    count, at_once = int(count), int(at_once)
    connection = sqlite3.connect(database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    # The checkpointer sets write-ahead logging; every commit is synced, as Sluice does.
    connection.execute("PRAGMA synchronous = FULL")
    node = {"noop": noop, "spawn": spawn}[kind]
    if measure == "first":
        graph = chain(saver, [writes_to(pipe)] + [node] * (STEPS - 1))
        took = []
        with open(pipe, "r+b", buffering=0) as heard, ThreadPoolExecutor(1) as pool:
            for number in range(count):
                began = time.perf_counter()
                run = pool.submit(invoke, graph, number, STEPS)
                heard.read(1)
                took.append(time.perf_counter() - began)
                run.result()
        print(statistics.median(took))
        return
    if measure == "runs":
        graph = chain(saver, [node] * STEPS)
    elif measure == "chain":
        graph = chain(saver, [node] * count)
    else:
        graph = fan(saver, node, count)
    before = resident()
    began = time.perf_counter()
    if measure == "runs":
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda number: invoke(graph, number, STEPS), range(count)))
    else:
        invoke(graph, 0, count, at_once)
    print(time.perf_counter() - began, before, resident())


if __name__ == "__main__":
    main(*sys.argv[1:])
