import t from 'tap'
import { isClosedName } from '../../../../sdk/node/files/closed-names.js'

t.test('git folders at any depth and .sandbox at the top are closed, in any spelling', async t => {
  for (const path of [
    '.git',
    'a/.GIT/config',
    '.git.',
    '.g\u200bit',
    '.ｇit',
    'git~1',
    'a/GIT~2/x',
    '.git::$INDEX_ALLOCATION',
    '.sandbox/config',
    '.Sandbox ',
  ])
    t.ok(isClosedName(path.split('/')), path)
  for (const path of ['a', '.github/x', 'git', 'git~', 'a/.sandbox/b', '.gitignore'])
    t.notOk(isClosedName(path.split('/')), path)
})
