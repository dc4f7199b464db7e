"""Embedding gradients as users ask for them: the bytes of the closed form at 1, 2 and 4 ranks, and refusals."""

from support import SCALEMARK, SMALL, ProgramTest, main, mpirun

STRATEGIES = [["--embedding_gradients", "dense"], ["--embedding_gradients", "sparse"],
              ["--embedding_gradients", "sparse", "--tied_gradient", "sparse"], ["--embedding_gradients", "sparse_as_dense"]]
BATCH, LENGTH, WIDTH = 4, 16, 128
RANKS = {"transformer_tiny": (1, 2, 4), "bert_tiny": (2,)}
# name: rows, tied, rows that a rank looks up in two micro-batches
TABLES = {"transformer_tiny": {"embedding": (1024, True, 2 * BATCH * LENGTH)},
          "bert_tiny": {"word_embedding": (1024, True, BATCH * LENGTH), "position_embedding": (512, False, 2 * LENGTH),
                        "segment_embedding": (2, False, BATCH * LENGTH)}}


def expected_bytes(model, strategy, tied, ranks):
    """(rows of a rank, buffer bytes, wire bytes): docs/measurements.md, written down once more."""
    rows = buffer = wire = 0
    for height, is_tied, lookups in TABLES[model].values():
        carried = height if is_tied and (strategy == "sparse_as_dense" or tied == "sparse") else 0
        if strategy != "dense":
            rows += lookups + carried
        if strategy == "sparse":
            buffer += ranks * (lookups + carried) * (4 * WIDTH + 8)
            wire += (ranks - 1) * (lookups + carried) * (4 * WIDTH + 8)
        if strategy != "sparse" or (is_tied and tied == "dense"):
            buffer += 4 * height * WIDTH
            wire += 2 * (ranks - 1) * 4 * height * WIDTH / ranks
    return rows or None, buffer, wire


class Embedding(ProgramTest):
    measured = {}  # one launch gives the records of all its numbers of ranks

    def words(self, model, strategy):
        return ["--model", model, "--batch_size", BATCH, "--sequence_length", LENGTH, "--micro_batch_size", 2, "--num_batches", 3,
                "--num_warmup_batches", 1, *strategy]

    def records(self, model, all_ranks, strategy):
        """The record of each number of ranks, from one launch."""
        key = (model, *strategy)
        if key not in self.measured:
            self.run_program(*mpirun(max(all_ranks), SCALEMARK, "scale", *self.words(model, strategy), "--ranks",
                                     ",".join(map(str, all_ranks)), "--repeats", "1", "--nobaseline", "--output", "curve.json"))
            self.measured[key] = {point["ranks"]: self.read(point["repeats"][0]["path"]) for point in self.read("curve.json")["points"]}
        return self.measured[key]

    def test_the_bytes_of_a_record_are_those_of_the_closed_form(self):
        for model, all_ranks in RANKS.items():
            for ranks in all_ranks:
                dense = None
                for strategy in STRATEGIES:
                    with self.subTest(model=model, ranks=ranks, strategy=strategy):
                        record = self.records(model, all_ranks, strategy)[ranks]
                        self.assertEqual(record["world_size"], ranks)
                        communication, found = record["communication"], record["communication"]["embedding"]
                        rows, buffer, wire = expected_bytes(model, found["strategy"], found["tied_gradient"], ranks)
                        self.assertEqual(found["rows_per_rank"], rows)
                        self.assertEqual(found["buffer_bytes_per_rank"], buffer)
                        self.assertEqual(found["wire_bytes_per_step"], wire)
                        self.assertEqual([table["name"] for table in found["tables"]], list(TABLES[model]))
                        self.assertEqual(found["exchange_seconds"] is None, ranks == 1)
                        self.assertEqual(found["densify_seconds"] is None, found["strategy"] == "dense")
                        if strategy == STRATEGIES[0]:
                            dense = communication
                            continue
                        # What is no table's travels as ever.
                        others = dense["wire_bytes_per_step"] - dense["embedding"]["wire_bytes_per_step"]
                        self.assertAlmostEqual(communication["wire_bytes_per_step"] - found["wire_bytes_per_step"], others,
                                               delta=0.01 * others)
                        if ranks > 1 and found["strategy"] == "sparse":
                            self.assertGreater(communication["messages_per_step"], len(found["tables"]))

    def test_images_have_no_embedding_and_refuse_its_strategies(self):
        self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "3", "--output", "r.json")
        self.assertIsNone(self.read("r.json")["communication"]["embedding"])
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--embedding_gradients", "sparse", expect=2)
        self.assertIn("smallnet has no embedding table", err)

    def test_a_curve_measures_its_baseline_too_and_the_dry_run_extrapolates(self):
        words = ["scale", "--model", "transformer_tiny", *STRATEGIES[2]]
        self.run_program(SCALEMARK, *words, "--ranks", "1,2", "--repeats", "1", "--num_batches", "3", "--num_warmup_batches",
                         "1", "--output", "curve.json")
        self.assertEqual(self.read("curve.json")["status"], "ok")
        out, _ = self.run_program(SCALEMARK, *words, "--ranks", "64,1024", "--dry_run")
        self.assertIn("embeddings", out)


if __name__ == "__main__":
    main()
