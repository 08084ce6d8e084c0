import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { sandbox } from '../cli-process.js'

t.test('the network access of conversations is shown and changed from the command line', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const daemon = await spawnDaemon(t, { workspace, data })
  const network = (...args: string[]) => sandbox(['network', ...args], { env: { SANDBOX_DATA: data } })
  t.match(await network(), {
    code: 0,
    out: new RegExp(
      String.raw`^each conversation has its own network \(own\)\n`
        + String.raw`it reaches public addresses, and what is allowed\nno further address is allowed;`,
    ),
  })
  t.match(await network('allow', 'localhost:5432', '10.1.0.0/16'), {
    code: 0,
    out: /allowed:\n  localhost:5432\n  10\.1\.0\.0\/16\n$/,
  })
  t.match(await network('allow', '*.example.org:443'), {
    code: 0,
    out: /  localhost:5432\n  10\.1\.0\.0\/16\n  \*\.example\.org:443\n$/,
  })
  t.match(
    (await daemon.client.call('GET /settings')).networkAllow,
    exactly('localhost:5432', '10.1.0.0/16', '*.example.org:443'),
  )
  t.match(await network('remove', '10.1.0.0/16'), { code: 0, out: /  localhost:5432\n  \*\.example\.org:443\n$/ })
  t.match(await network('remove', '10.1.0.0/16'), { code: 2, err: /10\.1\.0\.0\/16 is not in the list/ })
  t.match(await network('only', 'on'), { code: 0, out: /it reaches only what is allowed/ })
  t.match(await network('shared'), { code: 0, out: /the network of the machine/ })
  t.match(JSON.parse((await network('--json')).out), {
    network: 'shared',
    networkOnly: true,
    networkAllow: exactly('localhost:5432', '*.example.org:443'),
  })
  t.match(await network('own'), { code: 0, out: /its own network/ })
  t.match(await network('allow', '169.254.169.254'), { code: 2, err: /set\.networkAllow\[2\].*told its own secrets/ })
  t.match(await network('allow', `localhost:${new URL(daemon.url).port}`), { code: 2, err: /this sandbox itself/ })
})

t.test('invalid arguments are refused with the expected form', async t => {
  for (const args of [['what'], ['allow'], ['remove'], ['only'], ['only', 'maybe'], ['own', 'x'], ['shared', 'x']]) {
    t.match(
      await sandbox(['network', ...args]),
      { code: 2, err: /expected network, network allow HOST/ },
      args.join(' '),
    )
  }
})
