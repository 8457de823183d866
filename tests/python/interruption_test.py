#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long search lets other threads run, calls back, and ends at Ctrl-C."""

import os
import signal
import threading
import time
import unittest

import stepcast

# A proof takes longer than the limit that ctest sets for these tests.
LONG = {"model": "llama-3.1-405b", "cluster": "dgx-h100x64", "training": {"global_batch": 1024}}


class Interruption(unittest.TestCase):

    def search(self, **options):
        return stepcast.plan(LONG, prove=True, replays=1_000_000, **options)

    def test_ctrl_c_ends_a_search(self):
        killer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        killer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.search()
        # Nothing is left behind: the next call answers.
        self.assertTrue(stepcast.predict(model="llama-3.1-8b", cluster="dgx-h100",
                                         global_batch=64, tp=2)["fits"])

    def test_an_exception_of_the_callback_ends_a_search(self):
        def fail(now):
            raise RuntimeError(f"enough after {now['replayed']}")

        with self.assertRaisesRegex(RuntimeError, "enough after"):
            self.search(progress=fail)

    def test_the_callback_runs_on_the_callers_thread_and_others_run_meanwhile(self):
        threads, counted = set(), []
        running = threading.Event()
        running.set()

        def count():
            while running.is_set():
                counted.append(1)
                time.sleep(0.001)

        other = threading.Thread(target=count)

        def told(now):
            threads.add(threading.get_ident())
            return now["elapsed_s"] < 1

        other.start()
        try:
            begin = len(counted)
            self.search(progress=told)
            during = len(counted) - begin
        finally:
            running.clear()
            other.join()
        self.assertEqual(threads, {threading.get_ident()})
        self.assertGreater(during, 10)

    def test_a_time_limit_is_kept(self):
        plan = self.search(time_limit_s=1)
        self.assertTrue(plan)
        self.assertFalse(plan.proven)

    def test_searches_of_several_threads_give_the_same(self):
        plans = [None] * 3

        def work(place):
            plans[place] = stepcast.plan(model="llama-3.1-8b", cluster="dgx-h100",
                                         global_batch=64, replays=16, threads=1)

        workers = [threading.Thread(target=work, args=(place,)) for place in range(len(plans))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertTrue(plans[0])
        self.assertEqual(plans[1:], plans[:1] * 2)


if __name__ == "__main__":
    unittest.main()
