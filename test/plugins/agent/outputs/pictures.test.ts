import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pictureOf, unseenBecause } from '../../../../plugins/agent/outputs/pictures.js'
import { outputFolder } from '../../../../plugins/agent/outputs/whole-outputs.js'
import { promptOf } from '../../../../plugins/agent/providers/native/prompt.js'
import type { SessionEntry } from '../../../../plugins/agent/providers/native/session.js'
import { requestTexts } from '../../../../sdk/node/models/request-texts.js'
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
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR', 'latin1'), size, Buffer.from(`${rest}IEND`)])
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
    drawing = (_data: string): void => {},
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
        drawing(daemon.data)
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
  t.match(unseenBecause(Buffer.concat([png(4, 4), Buffer.alloc(4_000_000)])), /found 4000029 bytes/)
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

t.test('a picture that is not whole is refused with a sentence', async t => {
  const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
  const jpeg = '\xff\xd8\xff\xc0\0\x0b\x08\0\x05\0\x06\x03\x01\0\0'
  const webp = 'RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x03\0\0'
  const whole = {
    PNG: png(3, 4),
    GIF: bytes('GIF89a\x03\0\x04\0;'),
    JPEG: bytes(`${jpeg}\xff\xd9`),
    WebP: bytes(`${webp}....`),
  }
  for (const [name, picture] of Object.entries(whole)) {
    t.equal(unseenBecause(picture), undefined, name)
    t.equal(unseenBecause(picture.subarray(0, -1)), 'its end is missing: it may still be written', name)
  }
  t.equal(unseenBecause(bytes(`\x89PNG\r\n${'x'.repeat(40)}IEND`)), 'its header is broken')
})

t.test('a result is there although its picture cannot be kept', async t => {
  const { server, turn } = await reading(t, 'anthropic', [], {
    calls: [{ name: 'draw', input: {} }],
    pictures: [PICTURE.toString('base64')],
    drawing: data => {
      rmSync(outputFolder(data, 'c'), { recursive: true, force: true })
      writeFileSync(outputFolder(data, 'c'), '')
    },
  })
  await turn()
  const { text } = server.requests.at(-1)!
  t.match(text, /drawn\\n\[picture 1 is not shown: it could not be kept: the disk is full or failing\]/)
})

t.test(
  'a request has no more pictures of results than servers take, the newest, and later ones begin alike',
  async t => {
    const folder = t.testdir({ small: 'x', large: 'x'.repeat(3_900_000) })
    /** What reading so many pictures one after another leaves in a session. */
    const sentAfter = async (count: number, file: string) => {
      const entries = Array.from({ length: count }, (_, at): SessionEntry[] => {
        const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
        const call = { kind: 'call', id: `${at}`, frame: `${at}`, name: 'Read', input: {} } as const
        const pictures = [{ path: `${at}.png`, absolute: join(folder, file), mime: 'image/png' }]
        return [
          { kind: 'answer', n: 2 * at, run: 'r', parts: [call], usage, by: 'm' },
          { kind: 'result', n: 2 * at + 1, frame: `${at}`, ok: true, text: 'a picture', pictures },
        ]
      }).flat()
      const options = { instructions: '', by: 'm', pictures: true, picturesInResults: true, marksCache: false }
      const prompt = await promptOf(entries, { ...options, album: new Map() })
      const shown = prompt.flatMap(({ role, content }) =>
        role === 'tool'
          ? content.map(part => part.type === 'tool-result' && JSON.stringify(part.output).includes('"type":"file"'))
          : [],
      )
      return { shown, count: shown.filter(Boolean).length }
    }
    t.equal((await sentAfter(20, 'small')).count, 20)
    const [after21, after30] = [await sentAfter(21, 'small'), await sentAfter(30, 'small')]
    t.equal(after21.count, 10)
    t.equal(after30.count, 19)
    t.same(after30.shown.slice(0, 21), after21.shown, 'nothing else goes meanwhile')
    t.equal(after30.shown.at(-1), true)
    const large = await sentAfter(9, 'large')
    t.ok(large.count > 0 && large.count * 3_900_000 <= 16 * 1024 * 1024, `${large.count}`)
  },
)
