"""Is a file on this machine? SQLite's locks do not hold across a network."""

from __future__ import annotations

from pathlib import Path

from millpond.errors import StoreRefused

NETWORK = frozenset(
    [
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "9p",
            "afs",
            "ceph",
            "glusterfs",
            "lustre",
            "ncpfs",
            "ocfs2",
        ),
        *("gfs2", "beegfs", "davfs", "virtiofs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"),
        "fuse.davfs",
    ]
)


def refuse_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> None:
    """Raise StoreRefused if the file would live on a network file system."""
    place = path.absolute().parent
    while not place.exists() and place != place.parent:
        place = place.parent
    kind = _kind(place.resolve(), mounts)
    if kind in NETWORK:
        raise StoreRefused(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold: "
            "use a local disk, or PostgreSQL or Redis for several machines"
        )


def _kind(place: Path, mounts: Path) -> str:
    """The type of the innermost mount that holds a folder."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    found = ("", "")
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].encode().decode("unicode_escape")
        if place.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, parts[2])
    return found[1]
