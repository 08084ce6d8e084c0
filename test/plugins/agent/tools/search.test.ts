import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'

const said = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')

t.test('an agent searches its private copy, and not the workspace', async t => {
  const { client } = await daemonWith(t, ['agent', 'agents', 'workspace'], {
    files: { 'src/a.ts': 'one\nthe needle (here)\n', '.gitignore': 'out\n', 'out/b.ts': 'the needle (ignored)\n' },
  })
  const isolated = { isolated: true }
  const found = said(
    await runTurn(client, 'copy', 'write new.txt\n| a needle (new)\nsearch needle (\nsay $out', isolated),
  )
  t.match(found, /src\/a\.ts\n {2}2: the needle \(here\)/)
  t.match(found, /new\.txt\n {2}1: a needle \(new\)/)
  t.notMatch(found, /ignored/)
  const shared = said(await runTurn(client, 'shared', 'search needle (\nsay $out', { isolated: false }))
  t.match(shared, /here/)
  t.notMatch(shared, /new\.txt/, 'what was not landed is in the copy alone')
  t.match(said(await runTurn(client, 'none', 'search nowhere at all\nsay $out')), /nothing was found/)
})
