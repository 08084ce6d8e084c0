import type { Frame, TodoItem, ToolCategory } from '../../../turn/frames/frames.js'
import { content, malformed, needed } from '../argument.js'
import type { ScriptContext, ScriptFrames } from '../context.js'
import { chomp, kept } from '../texts.js'
import type { ToolUse } from '../use.js'
import { type ScriptVerb, verb } from '../verb.js'

const MARKS: { readonly [mark: string]: TodoItem['status'] } = { ' ': 'pending', '~': 'in_progress', x: 'completed' }

/** Makes the call; what it tells, or why it failed, goes to `$out`. */
async function* used(script: ScriptContext, use: ToolUse, tells = false): AsyncGenerator<Frame, boolean> {
  const { ok, text } = yield* script.call(use)
  if (tells || !ok) script.note({ out: kept(chomp(text)) })
  return ok
}

async function* done(script: ScriptContext, use: ToolUse, tells = false): ScriptFrames {
  yield* used(script, use, tells)
}

const at = (name: string, category: ToolCategory, path: string, input: object = {}): ToolUse => ({
  name,
  category,
  target: path,
  input: { path, ...input },
})

const sided = (lines: readonly string[], sign: string): string[] =>
  lines.filter(line => line[0] === sign).map(line => line.slice(line[1] === ' ' ? 2 : 1))

const todoItem = (part: string): TodoItem => {
  const text = part.trim()
  const status = text[0] === '[' && text[2] === ']' ? MARKS[text[1]!] : undefined
  const content = text.slice(3).trim()
  return status === undefined || content === '' ? malformed('todo [ ] a | [~] b | [x] c', text) : { content, status }
}

interface Place {
  readonly path: string
}
type Span = Place & { readonly from?: number; readonly to?: number }
type Whole = Place & { readonly content: string }
type Part = Place & { readonly old: string; readonly new: string }

const place =
  (form: string) =>
  ({ text }: { readonly text: string }): Place => ({ path: needed(form, text) })

/** Files of the turn's tree, and the list of what is to do. */
export const files: { readonly [name: string]: ScriptVerb } = {
  todo: verb<{ readonly items: readonly TodoItem[] }>({
    form: 'todo [ ] a | [~] b | [x] c',
    help: 'shows a list of what is to do, in hand and done',
    lineless: true,
    read: ({ text }) => ({ items: text.split('|').map(todoItem) }),
    run: async function* (input, script): ScriptFrames {
      const items = input.items.map(item => ({ ...item, content: script.text(item.content) }))
      const use: ToolUse = { name: 'Todo', category: 'think', target: `${items.length} items`, input: { items } }
      if (yield* used(script, use)) yield* script.once({ kind: 'todos', items })
    },
  }),
  read: verb<Span>({
    form: 'read PATH [FROM-TO]',
    help: 'reads a file into $out',
    lineless: true,
    read: ({ text }) => {
      const range = /\s(\d{1,9})-(\d{1,9})$/.exec(text.slice(-24))
      if (!range) return { path: needed('read PATH [FROM-TO]', text) }
      const [from, to] = [Number(range[1]), Number(range[2])]
      if (from < 1 || to < from) malformed('lines counted from 1, the first before the last', range[0].trim())
      return { path: text.slice(0, -range[0].length).trim(), from, to }
    },
    run: ({ path, from, to }, script) => {
      const range = from !== undefined && to !== undefined && { offset: from, limit: to - from + 1 }
      return done(script, at('Read', 'read', script.text(path), { ...range }), true)
    },
  }),
  list: verb<Place>({
    form: 'list PATH',
    help: 'lists a folder into $out',
    lineless: true,
    read: ({ text }) => ({ path: text === '' ? '.' : text }),
    run: ({ path }, script) => done(script, at('List', 'search', script.text(path)), true),
  }),
  search: verb<{ readonly query: string }>({
    form: 'search QUERY',
    help: 'searches the lines of all files for a text; what was found is in $out',
    lineless: true,
    read: ({ text }) => ({ query: needed('search QUERY', text) }),
    run: (input, script) => {
      const query = script.text(input.query)
      return done(script, { name: 'Search', category: 'search', target: query, input: { query, literal: true } }, true)
    },
  }),
  write: verb<Whole>({
    form: 'write PATH',
    help: 'writes the | lines below into a file',
    read: ({ text, lines }) => ({ path: needed('write PATH', text), content: content(lines) }),
    run: (input, script) =>
      done(script, at('Write', 'edit', script.text(input.path), { content: script.text(input.content) })),
  }),
  append: verb<Whole>({
    form: 'append PATH',
    help: 'writes the | lines below behind what the file holds',
    read: ({ text, lines }) => ({ path: needed('append PATH', text), content: content(lines) }),
    run: (input, script) => {
      const path = script.text(input.path)
      return done(script, { ...at('Append', 'edit', path, { content: script.text(input.content) }), changes: [path] })
    },
  }),
  edit: verb<Part>({
    form: 'edit PATH',
    help: 'replaces the lines "| - old" by the lines "| + new"; old must occur exactly once',
    read: ({ text, lines }) => {
      const stray = lines.find(line => line[0] !== '-' && line[0] !== '+')
      if (stray !== undefined) malformed('lines of the form - old and + new', stray === '' ? 'an empty line' : stray)
      const old = sided(lines, '-')
      if (old.length === 0) malformed('at least one line of the form - old', '')
      return { path: needed('edit PATH', text), old: old.join('\n'), new: sided(lines, '+').join('\n') }
    },
    run: (input, script) => {
      const path = script.text(input.path)
      const use = at('Edit', 'edit', path, { old: script.text(input.old), new: script.text(input.new) })
      return done(script, { ...use, changes: [path] })
    },
  }),
  delete: verb<Place>({
    form: 'delete PATH',
    help: 'deletes a file or an empty folder',
    lineless: true,
    read: place('delete PATH'),
    run: (input, script) => {
      const path = script.text(input.path)
      return done(script, { ...at('Delete', 'delete', path), changes: [path] })
    },
  }),
  move: verb<{ readonly from: string; readonly to: string }>({
    form: 'move FROM -> TO',
    help: 'moves or renames a file or folder',
    lineless: true,
    read: ({ text }) => {
      const [from, to, more] = text.split(' -> ', 3).map(part => part.trim())
      return from && to && more === undefined ? { from, to } : malformed('move FROM -> TO', text)
    },
    run: (input, script) => {
      const [from, to] = [script.text(input.from), script.text(input.to)]
      return done(script, { name: 'Move', category: 'move', target: from, input: { from, to }, changes: [from, to] })
    },
  }),
  image: verb<Place>({
    form: 'image PATH',
    help: 'shows a picture of the tree',
    lineless: true,
    read: place('image PATH'),
    run: ({ path }, script) => done(script, at('Read', 'read', script.text(path))),
  }),
}
