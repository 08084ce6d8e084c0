import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Frame } from '../../plugins/agent/contract.js'
import type { AskedModel } from '../support/servers/agent-model.js'
import { framesOf } from '../support/turns.js'
import { permits, type Answers, type ProgramWorld, type Turn } from './world.js'

/** Something that works with an agent program, or does not. */
export interface Feature {
  readonly id: string
  /** As the table names it. */
  readonly label: string
  /** It is tried in every run; the others only in a whole one. */
  readonly always?: true
  /** Throws where it does not work. */
  readonly holds: (world: ProgramWorld) => Promise<void>
}

const prose = ({ frames }: Turn): string => frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')

const failureIn = ({ frames }: Turn): string =>
  frames.map(frame => (frame.kind === 'error' ? frame.message : '')).join('') || prose({ frames, end: undefined })

const noticesIn = ({ frames }: Turn): string =>
  frames.map(frame => (frame.kind === 'notice' ? frame.text : '')).join('')

const completed = (turn: Turn): void =>
  assert.equal(turn.end?.kind === 'done' && turn.end.reason, 'completed', failureIn(turn))

const cards = ({ frames }: Turn, kind: Frame['kind']): Frame[] => frames.filter(frame => frame.kind === kind)

const sessionOf = ({ frames }: Turn): string | undefined =>
  frames.map(frame => (frame.kind === 'session' ? frame.sessionId : '')).find(Boolean)

/** Whether the model is told of a tool of the sandbox: as a tool, or by its name where the program looks tools up. */
const offers = ({ tools, body }: AskedModel, name: string): boolean =>
  tools.some(tool => /sandbox/.test(tool) && tool.endsWith(name))
  || new RegExp(`sandbox_+${name}\\b`).test(JSON.stringify(body))

/** Some requests of a program have other purposes, such as a title. */
const assertRemembers = ({ model }: ProgramWorld, text: string): void =>
  assert.ok(
    model.about(text).some(({ said }) => said.some(each => each.by === 'model' && each.text.includes('Hello there.'))),
    'the model does not get the first answer',
  )

const ANSWER: Answers = frame =>
  frame.kind === 'question'
    ? { kind: 'question', requestId: frame.requestId, answers: { 'Which colour?': 'blue' } }
    : permits('once')(frame)

const COLOUR = { question: 'Which colour?', header: 'Colour', options: [{ label: 'red' }, { label: 'blue' }] }

/** Everything that is promised of every agent program, in the order in which it is tried. */
export const FEATURES: readonly Feature[] = [
  {
    id: 'connect',
    label: 'is connected',
    always: true,
    holds: async ({ connected }) => {
      const last = connected.at(-1)
      assert.equal(last?.kind === 'result' && last.status.state, 'active')
    },
  },
  {
    id: 'turn',
    label: 'runs a turn',
    always: true,
    holds: async world => {
      const turn = await world.turn('talk', [{ say: 'Hello there.' }])
      completed(turn)
      assert.match(prose(turn), /Hello there\./)
    },
  },
  {
    id: 'tools',
    label: "has the sandbox's tools",
    always: true,
    holds: async ({ model }) => {
      const asked = model.about('Hello there.').filter(({ tools }) => tools.length > 0)
      for (const name of ['Ask', 'Delegate', 'Need'])
        assert.ok(
          asked.some(each => offers(each, name)),
          `${name} is not among ${asked.at(-1)?.tools.join(', ')}`,
        )
    },
  },
  {
    id: 'question',
    label: 'asks a question',
    holds: async world => {
      const turn = await world.turn('ask', [{ tool: 'Ask', input: { questions: [COLOUR] } }], { answers: ANSWER })
      completed(turn)
      assert.equal(cards(turn, 'question').length, 1, failureIn(turn))
      assert.ok(world.model.about('blue').length > 0, 'the model gets the answer')
      assert.equal(turn.frames.filter(frame => frame.kind === 'tool_call' && frame.name === 'Ask').length, 1)
    },
  },
  {
    id: 'permission',
    label: 'asks for permission',
    holds: async world => {
      const path = join(world.copyOf('permit'), 'asked.txt')
      const input = { permissionMode: 'default' }
      const denied = await world.turn('permit', [{ shell: 'echo no > asked.txt' }], {
        ...input,
        answers: permits('deny'),
      })
      assert.ok(cards(denied, 'permission').length > 0, failureIn(denied))
      assert.ok(!existsSync(path), 'a denied command ran')
      const allowed = await world.turn('permit', [{ shell: 'echo yes > asked.txt' }], {
        ...input,
        answers: permits('once'),
      })
      completed(allowed)
      assert.equal(existsSync(path) && readFileSync(path, 'utf8'), 'yes\n', failureIn(allowed))
    },
  },
  {
    id: 'diff',
    label: 'writes a file, which the diff shows',
    holds: async world => {
      const turn = await world.turn('work', [{ write: 'made.txt', text: 'made\n' }], { answers: permits('once') })
      completed(turn)
      const { repos } = await world.client.call('GET /agents/{id}/diff', { id: 'work' })
      assert.match(JSON.stringify(repos), /"made\.txt"/, failureIn(turn))
    },
  },
  {
    id: 'land',
    label: 'its work lands',
    holds: async world => {
      await world.client.call('POST /agents/{id}/land', { id: 'work', mode: 'check' })
      assert.equal(readFileSync(join(world.workspace, 'made.txt'), 'utf8').trim(), 'made')
    },
  },
  {
    id: 'second',
    label: 'goes on in a second turn',
    holds: async world => {
      const turn = await world.turn('talk', [{ say: 'Second answer.' }])
      completed(turn)
      assertRemembers(world, 'Second answer.')
    },
  },
  {
    id: 'stop',
    label: 'stops',
    holds: async world => {
      await world.send('stop', [{ hold: 'I am thinking about it.' }])
      await framesOf(world.client, 'stop').until(({ kind }) => kind === 'delta')
      await world.client.call('POST /agent/stop', { conversationId: 'stop' })
      const { end } = await world.follow('stop')
      assert.equal(end?.kind === 'done' && end.reason, 'stopped')
      completed(await world.turn('stop', [{ say: 'On again.' }]))
    },
  },
  {
    id: 'two',
    label: 'works in two conversations at once',
    holds: async world => {
      const ids = ['left', 'right']
      const where = [{ shell: 'pwd > where.txt; sleep 1' }]
      const turns = await Promise.all(ids.map(id => world.turn(id, where, { answers: permits('once') })))
      turns.forEach(completed)
      for (const [at, id] of ids.entries())
        assert.match(
          readFileSync(join(world.copyOf(id), 'where.txt'), 'utf8'),
          new RegExp(`/${id}(?:/tree)?\n$`),
          failureIn(turns[at]!),
        )
    },
  },
  {
    id: 'readonly',
    label: 'changes nothing in a turn that only reads',
    holds: async world => {
      const turn = await world.turn('look', [{ shell: 'echo x > read.txt; cat README.md' }], {
        allowedTools: ['Read', 'List', 'Search'],
        answers: permits('once'),
      })
      completed(turn)
      assert.ok(!existsSync(join(world.copyOf('look'), 'read.txt')))
    },
  },
  {
    id: 'plan',
    label: 'plans first',
    holds: async world => {
      const path = join(world.copyOf('plan'), 'planned.txt')
      let early: boolean | undefined
      const turn = await world.turn(
        'plan',
        [{ say: 'I would write planned.txt.' }, { write: 'planned.txt', text: 'planned' }],
        {
          permissionMode: 'plan',
          answers: (frame: Frame) => {
            if (frame.kind !== 'plan') return permits('once')(frame)
            early = existsSync(path)
            return { kind: 'plan', requestId: frame.requestId, approve: true }
          },
        },
      )
      completed(turn)
      assert.equal(early, false, early ? 'the plan changed a file' : `there is no plan: ${failureIn(turn)}`)
      assert.equal(existsSync(path) && readFileSync(path, 'utf8').trim(), 'planned', failureIn(turn))
    },
  },
  {
    id: 'restart',
    label: 'goes on after the daemon was killed',
    holds: async world => {
      const before = await world.turn('talk', [{ say: 'Before the end.' }])
      if (world.program.losesWithinMinute) await delay(60_000 - (Date.now() % 60_000))
      await world.send('talk', [{ hold: 'I am at work.' }, { say: 'Went on.' }])
      await framesOf(world.client, 'talk').until(({ kind }) => kind === 'delta')
      await world.restart()
      const { end } = await world.follow('talk')
      assert.equal(end?.kind === 'done' && end.reason, 'interrupted')
      const after = await world.turn('talk', [{ say: 'After the end.' }])
      completed(after)
      assert.equal(sessionOf(after), sessionOf(before), `it has another session: ${noticesIn(after)}`)
      assertRemembers(world, 'After the end.')
    },
  },
]
