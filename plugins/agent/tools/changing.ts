import { lstat, rename, rmdir, unlink } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { change, textContent, textOf } from './content.js'
import { done, Fields, tool } from './tool.js'
import { at, isThere, readFound, replace } from './tree.js'

interface ContentInput {
  readonly path: string
  readonly content: string
}

const contentOf =
  (name: string) =>
  (input: unknown): ContentInput => {
    const fields = new Fields(name, input)
    return { path: fields.path('path'), content: fields.text('content') }
  }

const onPath = ({ path }: { readonly path: string }) => ({ target: path, path, locations: [{ path }] })

/** Writes a whole file, making its folders. */
export const writeFile = tool<ContentInput>({
  category: 'edit',
  check: contentOf('Write'),
  describe: onPath,
  run: async ({ path, content }, tree) => {
    const { before, after } = await replace(tree, path, () => Buffer.from(content))
    return done(`${before ? 'replaced' : 'made'} ${path}, ${after.length} bytes`, change(path, before, after))
  },
})

/** Adds to the end of a file, or makes it. */
export const appendFile = tool<ContentInput>({
  category: 'edit',
  check: contentOf('Append'),
  describe: onPath,
  run: async ({ path, content }, tree) => {
    const added = Buffer.from(content)
    const { before, after } = await replace(tree, path, bytes => (bytes ? Buffer.concat([bytes, added]) : added))
    return done(`added ${added.length} bytes to ${path}`, change(path, before, after))
  },
})

interface EditInput {
  readonly path: string
  readonly old: string
  readonly new: string
  readonly all: boolean
}

/** Replaces a piece of a file that occurs exactly once, or with `all` everywhere. */
export const editFile = tool<EditInput>({
  category: 'edit',
  check: input => {
    const fields = new Fields('Edit', input)
    const [path, old] = [fields.path('path'), fields.text('old', { least: 1 })]
    return { path, old, new: fields.text('new'), all: fields.flag('all') }
  },
  describe: onPath,
  run: async ({ path, old, new: next, all }, tree) => {
    const { before, after } = await replace(tree, path, bytes => {
      if (!bytes) return refuse('not-found', `nothing in the workspace is named ${path}`)
      const text = textOf(bytes) ?? refuse('unprocessable', `${path} is binary and takes no edit`)
      const parts = text.split(old)
      const times = parts.length - 1
      const advice = times === 0 ? 'read it again and take the text as it stands' : 'name more of what stands around it'
      const wrong = times === 0 || (times > 1 && !all)
      if (wrong) refuse('unprocessable', `${path} holds the text to replace ${times} times, not once; ${advice}`)
      return Buffer.from(parts.join(next))
    })
    return done(`changed ${path}`, change(path, before, after))
  },
})

/** Removes a file, a link or an empty folder. */
export const deleteFile = tool<{ readonly path: string }>({
  category: 'delete',
  check: input => ({ path: new Fields('Delete', input).path('path') }),
  describe: onPath,
  run: ({ path }, tree) =>
    at(tree, path, { link: true }, async spot => {
      if (!(await isThere(spot.at))) refuse('not-found', `nothing in the workspace is named ${path}`)
      const info = await lstat(spot.at)
      if (info.isDirectory()) {
        await rmdir(spot.at).catch(error =>
          error.code === 'ENOTEMPTY'
            ? refuse('conflict', `${path} is a folder that is not empty; delete what is in it first, or use a command`)
            : Promise.reject(error),
        )
        return done(`removed the folder ${path}`)
      }
      const shown = info.isFile() && info.size <= 64 * 1024
      const content = shown
        ? change(path, (await readFound(spot.at, path)).bytes, Buffer.alloc(0))
        : textContent(`removed ${path}, ${info.size} bytes`)
      await unlink(spot.at)
      return done(`removed ${path}`, content)
    }),
})

/** Gives a file, link or folder another name; what has that name already stays. */
export const moveFile = tool<{ readonly from: string; readonly to: string }>({
  category: 'move',
  check: input => {
    const fields = new Fields('Move', input)
    return { from: fields.path('from'), to: fields.path('to') }
  },
  describe: ({ from, to }) => ({ target: `${from} -> ${to}`, path: to, locations: [{ path: from }, { path: to }] }),
  run: ({ from, to }, tree) =>
    at(tree, from, { link: true }, async source => {
      const itself = segmentsOf(to)
        .join('/')
        .startsWith(`${segmentsOf(from).join('/')}/`)
      if (itself) refuse('unprocessable', `${from} cannot be moved into itself`)
      if (!(await isThere(source.at))) refuse('not-found', `nothing in the workspace is named ${from}`)
      return at(tree, to, { link: true, make: true }, async target => {
        if (await isThere(target.at)) refuse('conflict', `${to} exists already; delete it first or choose another name`)
        await rename(source.at, target.at)
        return done(`moved ${from} to ${to}`)
      })
    }),
})
