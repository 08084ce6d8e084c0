import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Test } from 'tap'
import type { PluginManifest } from '../../kernel/manifest.js'
import { root } from './daemon.js'

/** A group made for a test: the differences to the default manifest, and the body of its `activate(host)`. */
export interface MadeGroup {
  readonly manifest?: Partial<PluginManifest>
  /** The statements of `activate`; `note(text)` adds to the notes of the test, `serve(handlers)` serves calls. */
  readonly activate: string
}

/** The manifests and modules of groups in a folder of the test, and their notes. */
export const madeGroups = (
  t: Test,
  groups: { readonly [name: string]: MadeGroup },
): { manifests: string; notes: string[] } => {
  // Beside the folder of the test itself, which daemonWith creates again.
  const folder = `${t.testdirName}-groups`
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const manifests = join(folder, 'manifests')
  const key = `notes:${folder}`
  const notes: string[] = ((globalThis as { [key: string]: unknown })[key] = [])
  mkdirSync(manifests, { recursive: true })
  for (const [name, { manifest = {}, activate }] of Object.entries(groups)) {
    const module = join(folder, `${name}.mjs`)
    const whole: PluginManifest = {
      publisher: 'sandbox',
      name,
      version: '1.0.0',
      label: name,
      summary: 'Made for a test.',
      entry: relative(root, module),
      calls: [],
      libraries: [],
      domains: [],
      programs: [],
      permissions: { daemon: [], late: [] },
      routes: {},
      ...manifest,
    }
    const calls = [...Object.keys(whole.routes), ...whole.calls]
    writeFileSync(join(manifests, `${name}.json`), JSON.stringify(whole))
    writeFileSync(
      module,
      [
        `const note = text => globalThis[${JSON.stringify(key)}].push(${JSON.stringify(`${name} `)} + text)`,
        "note('is read')",
        `const functions = ${JSON.stringify(calls)}.map(name => ({ name, description: 'Does it.', parameters: [] }))`,
        'export const contract = {',
        '  schema: () => ({ components: {}, functions }),',
        '  request: ({ call, input }) => ({ success: true, data: { call, input } }),',
        '  reply: () => value => ({ success: true, data: value }),',
        '}',
        'export const activate = async host => {',
        '  const serve = handlers => host.serve(contract, handlers)',
        activate,
        '}',
      ].join('\n'),
    )
  }
  return { manifests, notes }
}
