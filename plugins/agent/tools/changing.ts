import { lstat, rename, rmdir, unlink } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { change, textContent, textOf } from './content.js'
import { appended, bytesIn, fileFormOf, rewritten } from './file-form.js'
import { patched } from './edits/patched.js'
import { editedLines } from './line-hashes.js'
import { replacedParts } from './replaced.js'
import { done, tool, type ToolContext } from './tool.js'
import { at, isThere, readFound, replace } from './tree.js'

const onPath = ({ path }: { readonly path: string }) => ({ target: path, path, locations: [{ path }] })

const HEAD_LINES = 40
const HEAD_LENGTH = 4_000

/** Refuses to replace a file whose content the model has not seen, with what it begins with. */
const assertKnown = ({ known }: Pick<ToolContext, 'known'>, path: string, bytes: Buffer): void => {
  const state = known?.state(path, bytes) ?? 'known'
  if (state === 'known') return
  const text = textOf(bytes)
  const head = text?.split('\n').slice(0, HEAD_LINES).join('\n').slice(0, HEAD_LENGTH).toWellFormed()
  const whole = text !== undefined && head === text
  // What is shown here whole is seen.
  if (whole) known?.note(path, bytes)
  const why = state === 'changed' ? 'changed since you read it' : 'exists already, and you have not read it'
  const then = whole ? 'write it again if this may go' : 'read it first, or change a part of it with Edit'
  const shown =
    head === undefined ? `it is binary, ${bytes.length} bytes` : `it ${whole ? 'is' : 'begins with'}:\n${head}`
  refuse('conflict', `${path} ${why}: nothing was written; ${then}. Now ${shown}`)
}

/** Writes a whole file and creates missing folders; a file that was there keeps its line ends and byte order mark. */
export const writeFile = tool('Write', {
  category: 'edit',
  describe: onPath,
  run: async ({ path, content }, tree) => {
    const { before, after } = await replace(tree, path, bytes => {
      if (bytes) assertKnown(tree, path, bytes)
      return rewritten(content, bytes, path)
    })
    tree.known?.note(path, after)
    return done(`${before ? 'replaced' : 'made'} ${path}, ${after.length} bytes`, change(path, before, after))
  },
})

/** Appends to a text file, with its line ends, or creates it. */
export const appendFile = tool('Append', {
  category: 'edit',
  describe: onPath,
  run: async ({ path, content }, tree) => {
    const { before, after } = await replace(tree, path, bytes => appended(content, bytes, path))
    tree.known?.changed(path, before, after)
    return done(`added ${after.length - (before?.length ?? 0)} bytes to ${path}`, change(path, before, after))
  },
})

/** Replaces a text that occurs exactly once in a file, or with `all` every occurrence; or lines by their hashes. */
export const editFile = tool('Edit', {
  category: 'edit',
  describe: onPath,
  refine: ({ old, from, to, after, all, edits, patch, new: next }, misfit) => {
    const ways = [old, from, after, edits, patch].filter(way => way !== undefined).length
    if (ways === 0) misfit('old', 'the text to replace, a line in from or after, edits or a patch', undefined)
    if (ways > 1) misfit(old === undefined ? 'after' : 'old', 'one of old, from, after, edits and patch', old ?? after)
    if (to !== undefined && from === undefined) misfit('to', 'only with from', to)
    if (all !== undefined && old === undefined) misfit('all', 'only with old', all)
    const whole = edits !== undefined || patch !== undefined
    if (!whole && next === undefined) misfit('new', 'the replacement', undefined)
    if (whole && next !== undefined) misfit('new', 'none beside edits or a patch', next)
  },
  run: async ({ path, old, from, to, after: behind, new: next = '', all, edits, patch }, tree) => {
    let lines = ''
    let found = ''
    const parts = edits ?? (old === undefined ? undefined : [{ old, new: next, ...(all !== undefined && { all }) }])
    const { before, after } = await replace(tree, path, bytes => {
      if (!bytes) return refuse('not-found', `nothing in the workspace is named ${path}`)
      const { text, form } = fileFormOf(bytes, path)
      if (parts || patch !== undefined) {
        const edited = parts ? replacedParts(text, path, parts, form) : patched(text, path, patch ?? '', form)
        found = edited.found === undefined ? '' : `; ${edited.found}`
        return bytesIn(edited.text, form)
      }
      const edited = editedLines(text, path, {
        ...(from !== undefined && { from }),
        ...(to !== undefined && { to }),
        ...(behind !== undefined && { after: behind }),
        new: next,
      })
      lines = edited.shown
      return bytesIn(edited.after, form)
    })
    tree.known?.changed(path, before, after)
    const said = lines === '' ? `changed ${path}${found}` : `changed ${path}, which has there now:\n${lines}`
    return done(said, change(path, before, after))
  },
})

/** Removes a file, a link or an empty folder. */
export const deleteFile = tool('Delete', {
  category: 'delete',
  describe: onPath,
  run: ({ path }, tree) =>
    at(tree, path, { link: true }, async spot => {
      if (!(await isThere(spot.at))) refuse('not-found', `nothing in the workspace is named ${path}`)
      const info = await lstat(spot.at)
      if (info.isDirectory()) {
        await rmdir(spot.at).catch(error =>
          error.code === 'ENOTEMPTY'
            ? refuse('conflict', `${path} is a folder that is not empty; delete its contents first, or use a command`)
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

/** Renames a file, link or folder; never overwrites. */
export const moveFile = tool('Move', {
  category: 'move',
  describe: ({ from, to }) => ({ target: `${from} -> ${to}`, path: to, locations: [{ path: from }, { path: to }] }),
  run: ({ from, to }, tree) =>
    at(tree, from, { link: true }, async source => {
      const itself = segmentsOf(to)
        .join('/')
        .startsWith(`${segmentsOf(from, { existing: true }).join('/')}/`)
      if (itself) refuse('unprocessable', `${from} cannot be moved into itself`)
      if (!(await isThere(source.at))) refuse('not-found', `nothing in the workspace is named ${from}`)
      return at(tree, to, { link: true, make: true }, async target => {
        if (await isThere(target.at)) refuse('conflict', `${to} exists already; delete it first or choose another name`)
        await rename(source.at, target.at)
        return done(`moved ${from} to ${to}`)
      })
    }),
})
