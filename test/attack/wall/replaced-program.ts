import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { homeOfPeople } from '../../../sdk/node/wall/home.js'
import { runWalled, type WallKind } from '../../../sdk/node/wall/wall.js'
import { builder } from '../../../sdk/node/wall/builders.js'

/** Reads paths behind a wall again and again, until a file says stop, and prints what it saw. */
const [, , kind = 'bwrap', base = '', ...paths] = process.argv
if (!(await builder(kind as WallKind))) console.log('none')
else {
  const [workspace, data] = [join(base, 'work'), join(base, 'data')]
  const home = await homeOfPeople(data)
  const grants = { read: [join(base, 'granted')], write: [] }
  const hide = [join(base, 'granted/hidden'), join(base, 'granted/inner/hidden')]
  const script = `
    touch "$HOME/ready"
    while ! [ -e "$HOME/stop" ]; do
      for path in "$@"; do cat "$path" "$path"/* "$path"/*/* 2>/dev/null; done
      sleep 0.02
    done
    for path in "$@"; do cat "$path" "$path"/* "$path"/*/* 2>/dev/null; done
    echo over; cat "$GRANTED/open"; head -c 20 /etc/passwd; echo; ls -d /etc/ssl`
  const { stdout, stderr } = await runWalled(
    {
      workspace,
      data,
      home,
      grants,
      hide,
      cwd: workspace,
      env: { GRANTED: join(base, 'granted'), PATH: '/usr/bin:/bin' },
    },
    '/bin/sh',
    ['-c', script, 'sh', ...paths],
    { timeoutMs: 60_000 },
    kind as WallKind,
  )
  console.log(stdout.toString() + stderr + (existsSync(join(home.dir, 'ready')) ? '' : 'never ran'))
}
