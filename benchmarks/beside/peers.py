"""Who is timed: isamap and the libraries that its users would call otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Peer:
    """A library: the module of ``libraries/`` that calls it, and how to install it.

    ``variables`` are set in its environment.
    """

    name: str
    module: str
    what: str
    install: str = "pip install 'isamap[peers]'"
    variables: Mapping[str, str] = field(default_factory=dict)


OWN = "isamap"
OWN_MODULE = "own"

PEERS = (
    Peer(OWN, OWN_MODULE, "isamap, through benchmarks/peer.py", "pip install isamap"),
    Peer("torch", "pytorch", "PyTorch: oneDNN, MKL and its own kernels, the fastest of them"),
    Peer("onnxruntime", "onnx_runtime", "ONNX Runtime"),
    Peer("openblas", "openblas", "numpy with OpenBLAS", "pip install numpy"),
    Peer("onednn", "onednn", "oneDNN called as from C, the fastest of its layouts and interfaces"),
    Peer("xsmm", "xsmm", "libxsmm called from C, products only", "apt-get install libxsmm-dev gcc"),
)

TUNED = Peer(
    "tuned",
    OWN_MODULE,
    "isamap after a search of 30 s for each case; only if it is named",
    variables={"ISAMAP_PEER_TUNE": "30s"},
)


def chosen(names: str) -> list[Peer]:
    """Return the peers of a list with commas, all for ``all``; ValueError for an unknown one."""
    if names == "all":
        return list(PEERS)
    known = {peer.name: peer for peer in (*PEERS, TUNED)}
    wanted = names.split(",")
    for name in wanted:
        if name not in known:
            raise ValueError(f"unknown peer {name!r}; known: {', '.join(known)}")
    return [known[name] for name in wanted]
