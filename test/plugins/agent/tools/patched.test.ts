import t from 'tap'
import { fileFormOf } from '../../../../plugins/agent/tools/file-form.js'
import { patched } from '../../../../plugins/agent/tools/edits/patched.js'

const FILE = 'class A {\n  run() {\n    one()\n  }\n}\nclass B {\n  run() {\n    one()\n  }\n}\n'
const of = (text: string, patch: string, path = 'src/a.ts') => {
  const { text: inside, form } = fileFormOf(Buffer.from(text), path)
  return patched(inside, path, patch, form)
}

t.test('a patch is taken in the forms in which models write it', async t => {
  const both = FILE.replace('one()\n  }\n}\nclass', 'two()\n  }\n}\nclass')
  const hunk = '@@ class A {\n   run() {\n-    one()\n+    two()\n'
  const head = 'diff --git a/src/a.ts b/src/a.ts\nindex 1..2 100644\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,3 +1,3 @@\n'
  for (const [form, patch] of Object.entries({
    hunk,
    bare: hunk.replace('@@', ''),
    envelope: `*** Begin Patch\n*** Update File: ./src/a.ts\n${hunk}*** End of File\n*** End Patch`,
    unified: head + hunk.replace('@@', ''),
  }))
    t.equal(of(FILE, patch).text, both, form)
})

t.test('hunks are made in order, below the line that they name, with the line ends of the file', async t => {
  const two =
    '@@ class A {\n   run() {\n-    one()\n+    a()\n@@ class B {\n   run() {\n-    one()\n+    b()\n+    c()\n'
  const made = FILE.replace('one()', 'a()').replace('one()', 'b()\n    c()')
  t.equal(of(FILE, two).text, made)
  t.equal(of(FILE.replaceAll('\n', '\r\n'), two).text, made.replaceAll('\n', '\r\n'))
  t.equal(of('a\nb\nc', '@@\n a\n-b\n c\n').text, 'a\nc')
  t.equal(of('a\nb\n', '@@ a\n+new\n').text, 'a\nnew\nb\n')
  t.equal(of('a\n--x\n++y\n', '@@\n a\n---x\n+z\n ++y\n').text, 'a\nz\n++y\n', 'no heads of a diff')
  const blanks = of('\tif (x) {\n\t\tgo()\n\t}\n', '@@\n if (x) {\n-  go()\n+  stop()\n }\n')
  t.match(blanks, { text: /stop\(\)/, found: 'hunk 1 was found with other blanks or line ends' })
})

t.test('the last line keeps its end, and lines that stay keep theirs', async t => {
  t.equal(of('a\r\nb', '@@\n a\n-b\n+c\n').text, 'a\r\nc')
  t.equal(of('a\r\nb\r\nc', '@@ c\n+d\n').text, 'a\r\nb\r\nc\r\nd')
  t.equal(of('a\r\nb\r\nc', '@@\n b\n-c\n').text, 'a\r\nb')
  t.equal(of('a\r\nb\r\n', '@@\n b\n+c\n').text, 'a\r\nb\r\nc\r\n')
  t.equal(of('a\nb\r\nc\nd\n', '@@\n a\n b\n-c\n+x\n').text, 'a\nb\r\nx\nd\n', 'ends that are mixed stay so')
  t.match(of('\ta\r\n\tb\r\n\tc', '@@\n a\n-b\n+x\n').text, /^\ta\r\n\tx\r\n\tc$/)
  t.equal(of('\ta\r\n\tb\r\n\tc', '@@\n-  b\n').text, '\ta\r\n\tc', 'a line that goes leaves no empty one')
})

t.test('what does not fit, fits twice or changes another file is refused, and changes nothing', async t => {
  const refused = (patch: string, words: RegExp) => t.throws(() => of(FILE, patch), { message: words }, patch)
  refused('@@\n   run() {\n-    one()\n+    two()\n', /hunk 1 of 1: its lines are there 2 times: include more lines/)
  refused('@@ class A {\n-  run() {\n+  go() {\n@@\n-absent\n+x\n', /hunk 2 of 2: .* 0 times.*nothing was changed/)
  refused('@@\n-un() {\n+x\n', /0 times: read the file again/)
  refused('@@ nowhere\n+x\n', /hunk 1 of 1: it has no line that is there already/)
  refused('*** Begin Patch\n*** Update File: b.ts\n@@\n-a\n+b\n', /changes b\.ts too: make one call of Edit for each/)
  refused('*** Begin Patch\n*** Add File: b.ts\n+b\n', /one file: use Write and Delete for others/)
  refused('*** Update File: src/a.ts\n*** Move to: c.ts\n@@\n-a\n', /use Move/)
  refused('@@\nclass A {\n', /line 2 of the patch begins with "c", not with @@/)
  refused('@@\n', /changes nothing/)
})
