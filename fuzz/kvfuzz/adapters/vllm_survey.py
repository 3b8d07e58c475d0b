"""A survey of vLLM trees: which load, which methods each lacks, how its signatures and queue differ.

`python -m kvfuzz.adapters.vllm_survey TREE ...` prints the Markdown page docs/vllm-versions.md, one row per
tree in the order given. It measures; it judges nothing, and it owns no property.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from kvfuzz.adapters.vllm_location import find_root, find_version
from kvfuzz.adapters.vllm_pool import UpstreamPool
from kvfuzz.adapters.vllm_tree import load_tree
from kvfuzz.adapters.vllm_versions import NOT_LOADED, OPTIONAL_METHODS, TRIED
from kvfuzz.errors import TargetError

_PAGE = """# vLLM versions as targets

Which releases of vLLM load as a pool-level target, and how they differ from 0.33.0. Each tree was loaded with
the real `block_pool.py`, `kv_cache_utils.py` and `kv_events.py`, unmodified, and one request was cached,
released and found again. To get a tree: `python -m kvfuzz.adapters.fetch_tree VERSION --into .vllm-trees`.

This page is the output of one command. Run it again when a release is added:

```
python -m kvfuzz.adapters.vllm_survey $(ls -d .vllm-trees/vllm-* | sort -V) > docs/vllm-versions.md
```

"Released unhashed block" says where `free_blocks` puts a block without a hash: at the head of the free queue
(it is taken next) or at its tail. A model that expects the head does not describe versions that use the tail.

| version | loads | methods lacking | differences in signatures | hash | released unhashed block |
|---|---|---|---|---|---|
"""

_HASH_BLOCK_SIZE = 4


class Findings(NamedTuple):
    """What was found out about one tree; `cells` is the rest of its table row."""

    version: str
    loads: bool
    cells: str


def survey(path: Path) -> Findings:
    """Load and drive one tree. A tree that does not load is a finding, too; only a missing tree raises."""
    version = find_version(find_root(path))
    try:
        upstream = load_tree(path)
    except TargetError:
        return Findings(version, False, f"no | {NOT_LOADED.get(version, 'see the message of load_tree')} | | | |")
    lacking = ", ".join(f"`{name}`" for name in lacks(upstream)) or "none"
    different = "; ".join(differences(upstream)) or "none"
    request = upstream.make_request(range(_HASH_BLOCK_SIZE), _HASH_BLOCK_SIZE)
    kind = type(request.block_hashes[0]).__name__
    end = unhashed_release_end(upstream)
    return Findings(version, True, f"yes | {lacking} | {different} | {kind} | {end} |")


def table(findings: Sequence[Findings]) -> str:
    """Markdown rows; neighbours that differ in nothing share one."""
    rows = []
    for cells, group in groupby(findings, key=lambda finding: finding.cells):
        rows.append(f"| {', '.join(finding.version for finding in group)} | {cells}")
    return "\n".join(rows)


def lacks(upstream: UpstreamPool) -> tuple[str, ...]:
    """The optional methods that this version does not have."""
    return tuple(name for name in OPTIONAL_METHODS if name not in upstream.methods)


def differences(upstream: UpstreamPool) -> list[str]:
    """How calls of this version differ in shape from those of 0.33.0."""
    constructor = [
        f"no `{name}`"
        for name in ("hash_block_size", "metrics_collector", "medium", "num_hash_lookahead_tokens")
        if name not in upstream.constructor_parameters
    ]
    found = [f"constructor: {', '.join(constructor)}"] if constructor else []
    if "block_hashes" in upstream.cache_full_parameters:
        found.append("`cache_full_blocks` takes `block_hashes` and `hash_fn`")
    if "block_mask" not in upstream.cache_full_parameters:
        found.append("`cache_full_blocks` has no `block_mask`")
    partial = getattr(upstream.BlockPool, "cache_partial_block", None)
    if partial is not None and "replace_existing_hashes" not in inspect.signature(partial).parameters:
        found.append("`cache_partial_block` has no `replace_existing_hashes`")
    if "prepend" in inspect.signature(upstream.BlockPool.free_blocks).parameters:
        found.append("`free_blocks` takes `prepend`")
    if upstream.touch_takes_groups:
        found.append("`touch` takes one list per group")
    if "group_idx" not in upstream.BlockRemoved.__struct_fields__:
        found.append("events carry no group")
    return found


def unhashed_release_end(upstream: UpstreamPool) -> str:
    """Where a released block without a hash goes: "head" or "tail". Drives one round of the pool, too."""
    pool = upstream.make_pool(6, hash_block_size=_HASH_BLOCK_SIZE, events=True)
    request = upstream.make_request(range(2 * _HASH_BLOCK_SIZE), _HASH_BLOCK_SIZE)
    cached, plain = pool.get_new_blocks(2), pool.get_new_blocks(1)
    upstream.cache_full_blocks(pool, request, cached, 0, 2, _HASH_BLOCK_SIZE)
    pool.free_blocks(reversed(cached))
    found = pool.get_cached_block(request.block_hashes[1], [0])
    if found is None or found[0] is not cached[1]:
        raise TargetError(f"vLLM {upstream.version} does not find a block that it has just cached: {found}")
    upstream.touch(pool, found)
    pool.free_blocks(found)
    pool.free_blocks(plain)
    queue = pool.free_block_queue.get_all_free_blocks()
    return "head" if queue[0] is plain[0] else "tail"


def main(arguments: Sequence[str]) -> int:
    """Print the page; 2 and a message on stderr when there is no tree or a row differs from TRIED."""
    if not arguments:
        print("usage: python -m kvfuzz.adapters.vllm_survey TREE ...", file=sys.stderr)
        return 2
    try:
        findings = [survey(Path(argument)) for argument in arguments]
    except TargetError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(_PAGE + table(findings))
    wrong = [finding.version for finding in findings if finding.loads != (finding.version in TRIED)]
    if wrong:
        print(f"vllm_versions.TRIED does not agree on {', '.join(wrong)}: update it", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
