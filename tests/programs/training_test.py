"""Training as users ask for it: schedules, clipping, the learnable task, and what a loss that diverges says."""


from support import SCALEMARK, SMALL, ProgramTest, main, mpirun

LEARNT = {"smallnet": ["--num_batches", "120", "--init_learning_rate", "0.05"],
          "transformer_tiny": ["--num_batches", "250", "--init_learning_rate", "0.002", "--sequence_length", "8",
                               "--label_smoothing", "0"]}
SCHEDULE = ["--data", "learnable", "--lr_schedule", "polynomial", "--lr_warmup_steps", "10", "--clip_norm", "1",
            "--display_every", "1000", "--num_intra_threads", "1", "--output", "r.json"]


class Training(ProgramTest):
    def test_the_learnable_task_is_learnt(self):
        for model, ranks, overlap, precision in (("smallnet", 1, "none", "bf16"), ("smallnet", 2, "backward", "fp32"),
                                                 ("transformer_tiny", 2, "none", "fp32")):
            with self.subTest(model=model, ranks=ranks, overlap=overlap, precision=precision):
                self.run_program(*mpirun(ranks, SCALEMARK, "run", "--model", model, *LEARNT[model], *SCHEDULE, "--overlap", overlap,
                                         "--precision", precision, "--batch_size", 8 // ranks))
                loss = self.read("r.json")["loss"]
                self.assertLess(loss["last"], 0.4 * loss["first"])
                self.assertFalse(loss["diverged"])

    def test_a_loss_that_diverges_is_a_warning_and_the_throughput_stands(self):
        # Clipping keeps the numbers finite: steps of length 100 to wherever the gradient points.
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "160", "--data", "learnable", "--optimizer", "sgd",
                                  "--clip_norm", "1", "--lr_schedule", "0.2;120s;100", "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual(record["status"], "ok")
        self.assertTrue(record["loss"]["diverged"])
        self.assertGreater(record["throughput"]["mean"], 0)
        self.assertIn("warning: the loss diverged", err)

    def test_a_loss_that_is_not_finite_is_invalid(self):
        self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "40", "--inject", "nan_loss:step=30", "--output", "r.json",
                         expect=4)
        record = self.read("r.json")
        self.assertEqual(record["status"], "invalid")
        self.assertTrue(record["loss"]["diverged"])

    def test_refusals_are_exit_2_with_place_and_remedy(self):
        for flags, texts in ((["--lr_schedule", "0.1;30"], ["--lr_schedule:", "boundary and rate in turn"]),
                             (["--lr_schedule", "vaswani"], ["give --init_learning_rate"]),
                             (["--clip_norm", "-1"], ["--clip_norm: -1", "legal:"]),
                             (["--data", "imagenet"], ["--data:", "noise, learnable"])):
            _, err = self.run_program(SCALEMARK, "run", *SMALL, *flags, expect=2)
            for text in texts:
                self.assertIn(text, err)


if __name__ == "__main__":
    main()
