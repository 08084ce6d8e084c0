import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FrameMask } from '../../../../plugins/agent/secrets/frame-mask.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { Masker } from '../../../../sdk/node/access/masker.js'
import { daemonWith } from '../../../support/daemon.js'
import { meantInClear } from '../../../support/secret-search.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { inner } from '../../capabilities/support.js'

const VALUE = 'correct-horse/battery+staple'

/** A sandbox that stores one value; a real shell resolves it. */
const world = async (t: Test) => {
  const { client, data, workspace } = await daemonWith(t, ['agent'], {
    fakes: {
      'secrets.values': () => ({ values: [{ name: 'API', value: VALUE }], revision: 1 }),
      'secrets.resolve': ({ text }) => ({ text: text.replaceAll('{{secret:API}}', VALUE) }),
      'secrets.resolveCommand': ({ text }) =>
        text.includes('{{secret:API}}')
          ? { text: text.replaceAll('{{secret:API}}', '"$SANDBOX_SECRET_1"'), env: { SANDBOX_SECRET_1: VALUE } }
          : { unknown: ['NONE'], names: ['API'] },
    },
  })
  const turn = async (prompt: string): Promise<Frame[]> => {
    await client.call('POST /agent', { conversationId: 'c', prompt })
    return (await framesOf(client, 'c').all()).map(({ event }) => event)
  }
  return { client, data, turn, workspace }
}

/** All files below a folder, as one text. */
const everything = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map(path => readFileSync(path, 'latin1'))
    .join('\n')

t.test('a command gets the value, and no written file has it in any form', async t => {
  const { turn, data, client } = await world(t)
  const frames = await turn(
    'run printf %s {{secret:API}} | wc -c\nrun printf %s {{secret:API}}; printf %s {{secret:API}} | base64\n'
      + `say ${VALUE}`,
  )
  const shown = JSON.stringify(frames)
  t.match(shown, new RegExp(`"text":"${VALUE.length}`), 'the command had the whole value')
  t.match(shown, /\{\{secret:API\}\}/)
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  for (const [name, text] of [
    ['frames', shown],
    ['transcript', JSON.stringify(messages)],
    ['data folder', everything(data)],
  ] as const) {
    for (const form of [VALUE, Buffer.from(VALUE).toString('base64').slice(0, -2), encodeURIComponent(VALUE)])
      t.notOk(text.includes(form), `${name}: no ${form.slice(0, 8)}…`)
  }
})

t.test('an unknown name stops the command and lists the known names', async t => {
  const { turn, workspace } = await world(t)
  t.match(JSON.stringify(await turn('run echo {{secret:NONE}} > made.txt')), /no secret NONE: this turn may use API/)
  t.notOk(existsSync(join(workspace, 'made.txt')))
})

t.test('a value that is split over pieces of prose is masked in all of them', t => {
  const mask = new FrameMask(() => new Masker([{ name: 'API', value: VALUE }]))
  const texts = (frames: readonly Frame[]) => frames.flatMap(frame => ('text' in frame ? [frame.text] : []))
  const pieces = [...`so it is ${VALUE}, and that is all`].map(text => ({ kind: 'delta' as const, text }))
  const out = [...pieces.flatMap(frame => mask.push(frame)), ...mask.push({ kind: 'text_end' })]
  t.equal(texts(out).join(''), 'so it is {{secret:API}}, and that is all')
  t.same(out.at(-1), { kind: 'text_end' }, 'held text comes before the next frame')
  t.end()
})

t.test('a model that copies a file with a value in it writes the reference, and never reads the value', async t => {
  const server = await modelServer(t, 'openai', ({ text }, nth) => {
    if (nth === 0) return { calls: [{ name: 'Read', input: { path: 'config.json' } }] }
    const content = /\{\\+"key\\+":\\+"([^"\\]*)\\+"\}/.exec(text)?.[1] ?? 'nothing was read'
    if (nth === 1) return { calls: [{ name: 'Write', input: { path: 'copy.json', content: `{"key":"${content}"}` } }] }
    return { text: ['Done.'] }
  })
  const daemon = await daemonWith(t, ['agent'], {
    fakes: {
      'secrets.values': () => ({ values: [{ name: 'API', value: VALUE }], revision: 1 }),
      'endpoints.choices': () => ({
        endpoints: [
          {
            ...{ id: 'local', label: 'Local', default: 'm', ready: true },
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
          },
        ],
      }),
      'endpoints.target': () => server.target(),
    },
  })
  const { client, workspace } = daemon
  meantInClear(daemon, 'workspace: config.json', 'the file of a person has it')
  writeFileSync(join(workspace, 'config.json'), JSON.stringify({ key: VALUE }))
  const mode = { agent: 'endpoint/local', permissionMode: 'bypassPermissions' } as const
  const frames = await runTurn(client, 'c', 'copy it', mode)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.equal(readFileSync(join(workspace, 'copy.json'), 'utf8'), '{"key":"{{secret:API}}"}')
  for (const nth of server.requests.keys()) t.notOk(server.told(nth).includes(VALUE))
})

t.test('a single question has no stored value, such as one in a patch that landed', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['{"subject":"x"}'] }])
  const row = { id: 'm', label: 'M', efforts: [], badges: [] }
  const daemon = await daemonWith(t, ['agent', 'settings'], {
    fakes: {
      'secrets.values': () => ({ values: [{ name: 'API', value: VALUE }], revision: 1 }),
      'endpoints.choices': () => ({
        endpoints: [{ id: 'quick', label: 'Quick', models: [row], default: 'm', ready: true }],
      }),
      'endpoints.target': () => server.target(),
    },
  })
  await inner(daemon, 'agent.complete', {
    ...{ models: ['endpoint/quick:m'], timeoutMs: 10_000 },
    system: `never say ${VALUE}`,
    prompt: JSON.stringify({ patch: `+key=${VALUE}\n+{"key":${JSON.stringify(VALUE)}}\n` }),
  })
  const told = server.told(0)
  t.notMatch(told, VALUE)
  t.equal(told.split('{{secret:API}}').length, 4)
})
