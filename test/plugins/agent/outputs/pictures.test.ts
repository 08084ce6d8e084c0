import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pictureOf, unseenBecause } from '../../../../plugins/agent/outputs/pictures.js'
import { requestTexts } from '../../../../plugins/agent/providers/native/request-texts.js'
import { withChromium } from '../../../support/browser/browser.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { modelServer, type SeenRequest } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

const MODEL = { id: 'm', label: 'M', efforts: [], badges: [], contextWindow: 40_000 }

/** The beginning of a PNG of a size, and some bytes that tell it from others. */
const png = (width: number, height: number, rest = 'x'): Buffer => {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR', 'latin1'), size, Buffer.from(rest)])
}
const read = (path: string) => ({ name: 'Read', input: { path } })
const timesIn = ({ text }: SeenRequest, part: string): number => text.split(part).length - 1

interface Call {
  readonly name: string
  readonly input: object
}

const FILES = { 'README.md': '# w\n' }
const PICTURE = png(40, 30, 'the first')

/** A daemon whose model reads pictures, one an answer, and sees the requests that follow. */
const reading = async (
  t: Test,
  protocol: 'openai' | 'anthropic',
  paths: readonly string[],
  {
    blind = false,
    pictures = [] as readonly string[],
    groups = [] as readonly string[],
    calls = [] as readonly Call[],
  } = {},
) => {
  const server = await modelServer(t, protocol, request => {
    if (blind && /base64/.test(request.text)) return { status: 400, body: '{"error":{"message":"no image input"}}' }
    const done = request.text.split('is a PNG picture').length - 1 + request.text.split('is shown]').length - 1
    const made = (request.body.messages ?? []).filter(({ role }) => role === 'assistant').length
    const call = calls[made]
    if (call) return { calls: [call] }
    const next = paths[done]
    if (!next) return { text: ['seen'] }
    return { calls: [next.includes('.') ? read(next) : { name: next, input: {} }] }
  })
  const tool = { agentName: 'draw', name: 'draw', server: 's', description: 'Draws.', input: { type: 'object' } }
  const daemon = await daemonWith(t, ['agent', 'agents', ...groups], {
    files: FILES,
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [{ id: 'local', label: 'Local', models: [MODEL], default: 'm', ready: true }],
      }),
      'endpoints.target': () => server.target({ models: [MODEL] }),
      'mcp.tools': () => ({ tools: [{ ...tool, readOnly: true, approve: false }], problems: [] }) as never,
      'mcp.call': async function* () {
        const shown = pictures.map(data => ({ data, mime: 'image/png' }))
        yield { kind: 'result', ok: true, text: 'drawn', pictures: shown }
      } as never,
    },
  })
  writeFileSync(join(daemon.workspace, 'a.png'), PICTURE)
  writeFileSync(join(daemon.workspace, 'wide.png'), png(9_000, 2))
  const turn = async (prompt = 'look') => {
    await daemon.client.call('POST /agent', { conversationId: 'c', agent: 'endpoint/local', prompt })
    return (await framesOf(daemon.client, 'c').all()).map(({ event }) => event)
  }
  return { ...daemon, server, turn }
}

for (const protocol of ['openai', 'anthropic'] as const)
  t.test(`a picture that ${protocol} reads is in the requests that follow, as it was when it was read`, async t => {
    const data = PICTURE.toString('base64')
    const { server, turn, workspace } = await reading(t, protocol, ['a.png', 'wide.png'])
    await turn()
    const last = server.requests.at(-1)!
    t.equal(timesIn(last, data), 1)
    t.match(last.text, /a\.png is a PNG picture of \d+ bytes, 40 × 30 pixels/)
    t.match(
      last.text,
      /wide\.png is a PNG picture.*you do not see it: expected at most .* and 8000 pixels a side, found/,
    )
    writeFileSync(join(workspace, 'a.png'), png(1, 1, 'another'))
    await turn('again')
    t.equal(timesIn(server.requests.at(-1)!, data), 1, 'a later request begins with the same bytes')
    t.notMatch(server.requests.at(-1)!.text, png(1, 1, 'another').toString('base64'))
    const messages = last.body.messages ?? []
    if (protocol === 'anthropic')
      t.match(
        messages
          .flatMap(({ content }) => (Array.isArray(content) ? content : []))
          .find(({ type }) => type === 'tool_result'),
        {
          content: exactly(
            { type: 'text' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
          ),
        },
      )
    else
      t.match(
        messages.find(({ content }, at) => at > 1 && Array.isArray(content)),
        {
          role: 'user',
          content: exactly(
            { type: 'text', text: '[pictures of the result of Read:]' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
          ),
        },
      )
  })

t.test('a model that takes no pictures is told so, and the turn goes on', async t => {
  const { server, turn } = await reading(t, 'openai', ['a.png'], { blind: true })
  const frames = await turn()
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(
    frames.find(({ kind }) => kind === 'notice'),
    { text: 'the model accepts no pictures: they are left out' },
  )
  t.match(server.requests.at(-1)!.text, /this model takes no pictures, so you do not see it/)
})

t.test('pictures of a tool server are shown, and those that nobody could see are named', async t => {
  const [good, wide] = [PICTURE.toString('base64'), png(9_000, 2).toString('base64')]
  const { server, turn } = await reading(t, 'anthropic', ['draw'], {
    pictures: [good, wide, Buffer.from('<svg/>').toString('base64')],
  })
  await turn()
  const { text } = server.requests.at(-1)!
  t.match(text, good)
  t.notMatch(text, wide)
  t.match(
    text,
    /\[picture 1 is shown\].*\[picture 2 is not shown: expected.*\[picture 3 is not shown: it is none of PNG/s,
  )
})

t.test('a page of the browser is seen as it looks', withChromium(), async t => {
  const { server, turn } = await reading(t, 'anthropic', [], {
    groups: ['system'],
    calls: [
      { name: 'Browser', input: { action: 'open', url: 'about:blank' } },
      { name: 'Browser', input: { action: 'picture' } },
    ],
  })
  await turn()
  const { text } = server.requests.at(-1)!
  t.match(text, /a picture of the page p1, \d+ × \d+ pixels/)
  t.match(text, /"media_type":"image\/webp","data":"UklGR/)
})

t.test('the kind and size of pictures are those of their headers, and broken headers are found', async t => {
  const bytes = (...parts: readonly (string | readonly number[])[]): Buffer =>
    Buffer.concat(parts.map(part => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))))
  const webp = (chunk: string, ...rest: readonly number[]) =>
    bytes('RIFF', [9, 0, 0, 0], `WEBP${chunk}`, [9, 0, 0, 0], rest)
  const table: readonly (readonly [name: string, bytes: Buffer, size: readonly number[] | undefined])[] = [
    ['PNG', png(3, 70_000), [3, 70_000]],
    ['PNG', png(0, 5), undefined],
    ['PNG', png(3, 4).subarray(0, 20), undefined],
    ['GIF', bytes('GIF89a', [3, 0, 1, 1]), [3, 257]],
    ['GIF', bytes('GIF89a'), undefined],
    ['JPEG', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1, 0xff, 0xc2, 0, 11, 8, 0, 5, 0, 6, 3, 1]), [6, 5]],
    ['JPEG', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), undefined],
    ['JPEG', bytes([0xff, 0xd8, 0xff, 0xe0]), undefined],
    ['WebP', webp('VP8X', 0, 0, 0, 0, 2, 0, 0, 3, 0, 0), [3, 4]],
    ['WebP', webp('VP8 ', 0, 0, 0, 0x9d, 1, 0x2a, 7, 0, 8, 0), [7, 8]],
    ['WebP', webp('VP8L', 0x2f, 4, 0x40, 1, 0), [5, 6]],
    ['WebP', webp('ALPH', 0, 0), undefined],
  ]
  for (const [name, picture, size] of table) {
    t.match(pictureOf(picture), { name })
    t.same(pictureOf(picture)?.size, size, name)
    if (!size) t.match(unseenBecause(picture), 'its header is broken')
  }
  t.equal(pictureOf(bytes('<svg xmlns="x"/>')), undefined)
  t.match(unseenBecause(Buffer.concat([png(4, 4), Buffer.alloc(4_000_000)])), /found 4000025 bytes/)
})

t.test('the shield is told of pictures in results, and reads and changes their words alone', t => {
  const part = { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: 'AAAA' } }
  const value = [{ type: 'text' as const, text: 'words' }, part]
  const result = {
    type: 'tool-result' as const,
    toolCallId: '1',
    toolName: 'Read',
    output: { type: 'content' as const, value },
  }
  const { texts, binary } = requestTexts({ prompt: [{ role: 'tool', content: [result] }] })
  t.same(texts, ['words'])
  t.ok(binary)
  t.end()
})
