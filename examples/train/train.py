#!/usr/bin/env python3
"""Trains a small neural network on a spiral data set that it generates itself, with numpy only.

It prints the loss of each epoch, saves a checkpoint after each, and resumes from one if it is there.

  python train.py [--epochs 20] [--checkpoint-dir DIR] [--seed 7]

The checkpoint directory is --checkpoint-dir, else $BM_CHECKPOINT_DIR, else ./checkpoints.
"""

import argparse
import glob
import os
import time

import numpy as np

CLASSES, POINTS_PER_CLASS, HIDDEN, BATCH = 3, 400, 64, 64


def spirals(random):
    """Three interleaved arms in the plane: not separable by lines, so a hidden layer is needed."""
    radius = np.linspace(0.05, 1, POINTS_PER_CLASS)
    features, labels = [], []
    for arm in range(CLASSES):
        angle = np.linspace(arm * 4, (arm + 1) * 4, POINTS_PER_CLASS)
        angle = angle + random.normal(scale=0.15, size=POINTS_PER_CLASS)
        features.append(np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1))
        labels.append(np.full(POINTS_PER_CLASS, arm))
    return np.concatenate(features), np.concatenate(labels)


def new_model(random):
    return {
        "w1": random.normal(scale=0.5, size=(2, HIDDEN)), "b1": np.zeros(HIDDEN),
        "w2": random.normal(scale=0.1, size=(HIDDEN, CLASSES)), "b2": np.zeros(CLASSES),
    }


def forward(model, x):
    hidden = np.maximum(0, x @ model["w1"] + model["b1"])
    scores = hidden @ model["w2"] + model["b2"]
    scores = scores - scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    return hidden, probabilities / probabilities.sum(axis=1, keepdims=True)


def loss_and_gradients(model, x, y):
    hidden, probabilities = forward(model, x)
    loss = -np.log(probabilities[np.arange(len(y)), y] + 1e-12).mean()
    delta = probabilities.copy()
    delta[np.arange(len(y)), y] -= 1
    delta /= len(y)
    back = (delta @ model["w2"].T) * (hidden > 0)
    gradients = {"w2": hidden.T @ delta, "b2": delta.sum(axis=0), "w1": x.T @ back, "b1": back.sum(axis=0)}
    return loss, gradients


def save(directory, epoch, model, velocity):
    """Written beside and renamed: a checkpoint is complete or not there."""
    path = os.path.join(directory, f"epoch-{epoch:04d}.npz")
    with open(path + ".tmp", "wb") as file:
        np.savez(file, epoch=epoch, **model, **{"v_" + k: v for k, v in velocity.items()})
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)


def load_latest(directory):
    found = sorted(glob.glob(os.path.join(directory, "epoch-*.npz")))
    if not found:
        return None
    with np.load(found[-1]) as data:
        model = {k: data[k] for k in ("w1", "b1", "w2", "b2")}
        return int(data["epoch"]), model, {k: data["v_" + k] for k in model}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--checkpoint-dir", default=os.environ.get("BM_CHECKPOINT_DIR", "checkpoints"))
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    os.makedirs(options.checkpoint_dir, exist_ok=True)

    gpus = sorted(glob.glob("/dev/nvidia[0-9]*"))
    print(f"GPUs in this container: {len(gpus)} ({', '.join(gpus) or 'none'})", flush=True)

    x, y = spirals(np.random.default_rng(options.seed))
    resumed = load_latest(options.checkpoint_dir)
    if resumed:
        start, model, velocity = resumed
        print(f"resumed from epoch {start}", flush=True)
    else:
        start, model = 0, new_model(np.random.default_rng(options.seed + 1))
        velocity = {k: np.zeros_like(v) for k, v in model.items()}

    for epoch in range(start + 1, options.epochs + 1):
        began = time.monotonic()
        order = np.random.default_rng((options.seed, epoch)).permutation(len(x))
        losses = []
        for at in range(0, len(x), BATCH):
            batch = order[at:at + BATCH]
            loss, gradients = loss_and_gradients(model, x[batch], y[batch])
            losses.append(loss)
            for k in model:
                velocity[k] = 0.9 * velocity[k] - 0.1 * gradients[k]
                model[k] = model[k] + velocity[k]
        accuracy = (forward(model, x)[1].argmax(axis=1) == y).mean()
        print(f"epoch {epoch:3d}/{options.epochs}  loss {np.mean(losses):.4f}  accuracy {accuracy:.3f}"
              f"  {1000 * (time.monotonic() - began):.0f} ms", flush=True)
        save(options.checkpoint_dir, epoch, model, velocity)
    print("training complete", flush=True)


if __name__ == "__main__":
    main()
