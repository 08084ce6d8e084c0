/** The fields of an entry before its flags (gitformat-index(5)): a plain file, of an object that is not there. */
const ENTRY = "b'\\0'*24+b'\\0\\0\\x81\\xa4'+b'\\0'*12+b'\\1'*20"

/** The command that writes an index: `w` writes bytes, `n` makes a number of four bytes, `h` begins an entry. */
const written = (...steps: readonly string[]): string =>
  `python3 -c "${[
    'import sys',
    'w=sys.stdout.buffer.write',
    "n=lambda v: v.to_bytes(4,'big')",
    `h=${ENTRY}`,
    ...steps,
  ].join('; ')}" > "$i"`
const head = (version: number, entries: number) => `w(b'DIRC'+n(${version})+n(${entries}))`

/** What a turn can put in the place of an index, whose path is `$i`. */
export const INDEXES: { readonly [what: string]: string } = {
  'a giant one': `printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\0' > "$i"; truncate -s 1900M "$i"`,
  'names that grow to a thousand times their bytes': written(
    head(4, 5000),
    "w(h+b'\\x0f\\xff\\0'+b'a'*100000+b'00000\\0')",
    "[w(h+b'\\x0f\\xff\\5%05d\\0'%k) for k in range(1,5000)]",
    "w(b'\\0'*20)",
  ),
  'more entries than bytes': written(head(2, 0xffff_ffff), "w(b'\\0'*200)"),
  'a name without an end': written(head(2, 1), "w(h+b'\\x0f\\xff'+b'A'*100)"),
  'a name that takes away more than there is': written(head(4, 1), "w(h+b'\\0\\1\\x7fa\\0'+b'\\0'*20)"),
  'a name that leads out': written(head(2, 1), "w(h+b'\\0\\x0b../../e.txt'+b'\\0'*27)"),
  'a version of the future': written(head(9, 0), "w(b'\\0'*20)"),
  'an extension that claims 4 GiB': written(head(2, 0), "w(b'TREE'+b'\\xff'*4+b'\\0'*40)"),
  'fifty thousand extensions': written(head(2, 0), "w(b'XXXX\\0\\0\\0\\0'*50000+b'\\0'*20)"),
  'a tree that is another': written(head(2, 0), "w(b'TREE'+n(25)+b'\\x000 0\\n'+b'\\1'*20+b'\\0'*20)"),
  'a base that is a pipe':
    'git update-index --split-index; for s in "$(dirname "$i")"/sharedindex.*; do rm "$s"; mkfifo "$s"; done',
  'bases without an end': 'for k in 1 2 3; do truncate -s 1900M "$(dirname "$i")/sharedindex.$k"; done',
  nothing: 'rm -f "$i"',
  'a pipe': 'rm -f "$i"; mkfifo "$i"',
  'a folder': 'rm -f "$i"; mkdir "$i"',
  'a link to a device without an end': 'rm -f "$i"; ln -s /dev/zero "$i"',
  'a lock': 'touch "$i.lock"',
}

/** The command that puts one of them into a repository's own git folder. */
export const planting = (command: string): string => `i=$(git rev-parse --git-dir)/index; ${command}; echo PLANTED`

/** The command with which an agent mends it. */
export const MENDS =
  'i=$(git rev-parse --git-dir)/index; rm -rf "$i" "$i.lock" "$(dirname "$i")"/sharedindex.*; git reset -q; echo MENDED'
