"""Writes the manifests of the workflows in resources/workflows/: step counts and the SHA-256 of every file.

Run it after a change of a package by hand: python packaging/seal_workflows.py
"""
import collections
import hashlib
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1] / "resources" / "workflows"
TITLES = {
    "ThresholdSegmentation": (
        "Segment by threshold",
        "To segment what differs from its surroundings by intensity, such as bone in a CT, and to measure it.",
    ),
    "FiducialRegistration": (
        "Register two volumes by matching points",
        "To bring two volumes together by landmarks that a person places on both.",
    ),
}


def seal(folder):
    steps = json.loads((folder / "workflow.json").read_text("utf-8"))["steps"]
    counts = {"total": len(steps), **collections.Counter(step["kind"] for step in steps)}
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    manifest_path = folder / "manifest.json"
    title, when = TITLES.get(folder.name, (folder.name, ""))
    manifest = {
        "manifest_version": 2,
        "made_by": "slicer-ai-agent",
        "id": folder.name,
        "title": title,
        "when_to_use": when,
        "module": "",
        "needs": {"slicer": "5.2", "modules": []},
        "source": None,
        "status": "validated",
    }
    if manifest_path.exists():
        manifest.update(json.loads(manifest_path.read_text("utf-8")))
    manifest["steps"] = counts
    manifest["files"] = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    manifest_path.write_bytes((json.dumps(manifest, indent=2) + "\n").encode())


for one in sorted(ROOT.iterdir()):
    if one.is_dir():
        seal(one)
