import { permissionsOf, type PermissionEntry } from '../../../sdk/node/extension/permission-kinds.js'
import type { ExtensionContributions, ExtensionManifest } from '../manifest/manifest.js'
import type { ExtensionPower } from './power.js'

/** All powers of a manifest, sorted by key. `hooks`: its agent folder has hooks or a tool server. */
export const declaredPowers = (manifest: ExtensionManifest, { hooks = false } = {}): ExtensionPower[] => {
  const { entry, server, permissions, contributes = {} } = manifest
  const powers: ExtensionPower[] = [
    ...(entry === undefined ? [] : [{ key: 'entry', text: 'shows pages of its own in the console' }]),
    ...(server === undefined ? [] : [{ key: 'server', text: 'runs a backend process, contained behind a wall' }]),
    ...permissionsOf('sandbox', permissions?.sandbox).map(withPrograms(contributes)),
    ...permissionsOf('daemon', permissions?.daemon).map(({ power }) => ({ ...power })),
    ...shownPowers(contributes),
    ...ranPowers(contributes, hooks),
  ]
  return [...new Map(powers.map(power => [power.key, power])).values()].sort((one, other) =>
    one.key < other.key ? -1 : 1,
  )
}

/** Programs find the values of the connections that an extension uses; its backend gets references alone. */
const withPrograms =
  ({ processes = [] }: ExtensionContributions) =>
  ({ kind, power: { key, text } }: PermissionEntry): ExtensionPower => ({
    key,
    text: kind === 'connection' && processes.length > 0 ? `${text}, whose secret values its programs read` : text,
  })

const powersFor = <T>(items: readonly T[] | undefined, power: (item: T) => ExtensionPower[]): ExtensionPower[] =>
  (items ?? []).flatMap(power)

const shownPowers = (contributes: ExtensionContributions): ExtensionPower[] => [
  ...powersFor(contributes.views, ({ id, label, badge }) => [
    { key: `view:${id}`, text: `adds the view ${label}` },
    ...(badge ? [{ key: `view-badge:${id}`, text: `shows a count at the view ${label}` }] : []),
  ]),
  ...powersFor(contributes.sideViews, ({ id, label, beside, badge }) => [
    { key: `side-view:${id}`, text: `adds the panel ${label} beside a ${beside}` },
    ...(badge ? [{ key: `view-badge:${id}`, text: `shows a count at the panel ${label}` }] : []),
  ]),
  ...powersFor(contributes.viewers, ({ id, extensions }) => [
    { key: `viewer:${id}:${extensions.join(',')}`, text: `draws files of the types ${extensions.join(', ')}` },
  ]),
  ...powersFor(contributes.documents, ({ id, label, extensions }) => [
    extensions
      ? {
          key: `document:${id}:${extensions.join(',')}`,
          text: `reads all files of the types ${extensions.join(', ')} that are not text, and says what is in ${label}`,
        }
      : { key: `document:${id}`, text: `names documents ${label}` },
  ]),
  ...powersFor(contributes.commands, ({ command, title, keybinding }) => [
    { key: `command:${command}`, text: `adds the command ${title}` },
    ...(keybinding === undefined
      ? []
      : [{ key: `keybinding:${command}:${keybinding}`, text: `binds the keys ${keybinding} to ${title}` }]),
  ]),
  ...powersFor(contributes.files, ({ path }) => [{ key: `files:${path}`, text: `is told when ${path} changes` }]),
]

const ranPowers = (contributes: ExtensionContributions, hooks: boolean): ExtensionPower[] => {
  const { settings, processes, agent, environment, capabilities, listener, automationTemplates, bin, tools } =
    contributes
  return [
    ...powersFor(settings, ({ key, env }) =>
      env === undefined
        ? []
        : [{ key: `setting-env:${key}:${env}`, text: `puts its setting ${key} into the agent's shell as ${env}` }],
    ),
    ...powersFor(processes, ({ name, command, cwd, autoStart, preview, secrets = [] }) => [
      {
        key: `process:${name}`,
        text: `runs the background program ${name}: ${command}${cwd === undefined ? '' : ` (in ${cwd})`}`,
      },
      ...(autoStart ? [{ key: `process-auto:${name}`, text: `starts ${name} with the sandbox` }] : []),
      ...(preview
        ? [{ key: `process-preview:${name}`, text: `makes the port of ${name} reachable as a preview` }]
        : []),
      ...secrets.map(key => ({
        key: `process-secret:${name}:${key}`,
        text: `gives ${name} the value of secret ${key}`,
      })),
    ]),
    ...(agent ? [{ key: 'agent', text: 'adds skills, commands and agents to every turn' }] : []),
    ...(agent && hooks ? [{ key: 'agent-hooks', text: 'runs hooks or a tool server in every turn' }] : []),
    ...(environment
      ? [{ key: 'environment', text: 'sets variables of turns, and adds lines to the image of the sandbox' }]
      : []),
    ...powersFor(capabilities, ({ id, kind, catalog }) => [
      { key: `capability:${kind}:${id}`, text: `offers the connection ${catalog.name} of kind ${kind}` },
    ]),
    ...(listener
      ? [{ key: `listener:${listener.provider}`, text: `starts automations by messages of ${listener.provider}` }]
      : []),
    ...powersFor(automationTemplates, ({ id, title }) => [
      { key: `template:${id}`, text: `offers the automation ${title}` },
    ]),
    ...(bin === undefined ? [] : [{ key: 'bin', text: `adds the programs in ${bin} to the agent's PATH` }]),
    ...powersFor(tools, ({ name, title, readOnly }) => [
      { key: `tool:${name}`, text: `gives agents the tool ${title}` },
      ...(readOnly ? [] : [{ key: `tool-write:${name}`, text: `the tool ${title} may change things` }]),
    ]),
  ]
}
