import { PERMISSION_KINDS, readPermission, type PermissionKind } from '../sdk/node/extension/permission-kinds.js'

/** What an author reads about a kind beyond its form, which the code that reads entries gives. */
interface KindText {
  /** What an entry allows, as a sentence. */
  readonly allows: string
  readonly notes: readonly string[]
  readonly examples: readonly string[]
}

const TEXTS: { readonly [kind in PermissionKind['kind']]: KindText } = {
  route: {
    allows:
      'In `daemon`, the backend (`host.call`, `host.stream`) and the background programs may make this call. In '
      + '`sandbox`, its pages may make it, with the rights of the person who looks.',
    notes: [
      'One space stands between a method in capitals and a path. `GET` also holds for `HEAD`. A path has no empty '
        + 'segment, no `.` or `..` and no query; a slash inside a segment (a repository in a folder) is written `%2f`.',
      '`{name}` stands for one whole segment, `*` for one or more characters within a segment, `**` as the last '
        + 'segment for one or more segments.',
      'An entry with `*` or `**` reaches calls of viewers and collaborators alone: a call of maintainers must be named '
        + 'without. No entry reaches calls of owners or the trust surface: secrets, sessions, members, tokens, '
        + 'terminals, logs, bundles, and what decides about extensions, settings and connections.',
      'Calls that show what people and agents wrote also need `conversation:read`.',
      'The routes of the extension itself, below `/x/<publisher.name>/`, need no entry.',
    ],
    examples: ['GET /agents', 'GET /agents/{id}', 'GET /workspace/*', 'POST /needs'],
  },
  'fs:read': {
    allows: '`host.files` may read and watch these paths of the workspace.',
    notes: [
      'Paths are relative to the workspace; no segment is empty, `.` or `..`. `*` stands for characters within one '
        + 'segment; `**` is a whole segment and stands for any number of them. Other characters stand for themselves.',
      'Neither `*` nor `**` holds for names that begin with a dot. `.git` and `.sandbox` are never reached, nor links '
        + 'that lead out of the workspace.',
      'A folder is listed with its own path (`docs`), what is below it with `docs/**`.',
      'Its own folder, `.sandbox/x/<publisher.name>/`, needs no entry.',
    ],
    examples: ['fs:read:docs/**', 'fs:read:README.md', 'fs:read:src/*.ts'],
  },
  'fs:write': {
    allows: '`host.files` may read, watch, write, create, move and delete these paths of the workspace.',
    notes: ['As `fs:read`. To move or delete a folder, an entry must name everything below it (`out/**`).'],
    examples: ['fs:write:out/**', 'fs:write:CHANGELOG.md'],
  },
  net: {
    allows: '`host.fetch` and `host.connect` may connect to this host, on any port or on this one.',
    notes: [
      '`*.example.org` stands for every name below `example.org`, but not for itself; `*` stands for every host.',
      'With a `*` only public addresses are reached. A host of this machine or of a private network must be named. The '
        + 'daemon itself and addresses that tell a machine its secrets are never reached.',
      'Each connection and each redirect is checked after the name was resolved, and goes to the address that was '
        + 'checked.',
    ],
    examples: ['net:api.example.org', 'net:*.example.org:443', 'net:localhost:5432', 'net:[fd00::1]:8080', 'net:*'],
  },
  run: {
    allows: '`host.processes.run` may run this program of the machine.',
    notes: [
      'It is named by its name alone, never by a path. It runs behind a wall of its own, without a network, with the '
        + 'folders that `fs:` entries of the form `FOLDER/**` name (at `/workspace`) and its data folder.',
      'The safety policy decides about each line, as for a turn that nobody watches.',
    ],
    examples: ['run:git', 'run:python3'],
  },
  secret: {
    allows:
      '`host.secrets.ref`, `has` and `hmac` accept this stored key, and `host.fetch` and `host.connect` fill its value '
      + 'into headers, query and body.',
    notes: [
      '`*` at the end stands for the rest of a name. Alone it is refused: nobody could say which secrets it names. '
        + 'Fields of connections need `connection:`; secret settings of the extension itself need no entry.',
      'The value does not enter the process of the backend, which gets the reference `{{secret:KEY}}`. It is masked in '
        + 'what a server answers.',
    ],
    examples: ['secret:TRACKER_TOKEN', 'secret:API_*'],
  },
  connection: {
    allows: 'It may list the connections that were made from this card, and refer to their secret fields.',
    notes: [
      '`GET /capabilities/catalog` lists the cards; an extension brings its own as `contributes.capabilities`.',
      'A backend gets references. Background programs (`contributes.processes`) get the values, as files in the folder '
        + '`SANDBOX_SECRETS_DIR`.',
    ],
    examples: ['connection:github', 'connection:token'],
  },
  event: {
    allows: '`host.events.on` may receive events of the sandbox of this kind.',
    notes: [
      'The kinds are those that `GET /events` sends, such as `agent`, `agents`, `attention`, `presence`, '
        + '`refsChanged`, `reposChanged`, `runtimeChanged` and `workspaceChanged`. `*` at the end stands for the '
        + 'rest of a name; alone it stands for every kind.',
      'Events that another extension publishes have the kind `ext.<publisher.name>.<event>`.',
    ],
    examples: ['event:agent', 'event:workspaceChanged', 'event:ext.acme.notes.*'],
  },
  conversation: {
    allows: 'Its calls of `daemon` that show transcripts are answered.',
    notes: ['It adds to an entry that names the call, and allows nothing alone.'],
    examples: ['conversation:read'],
  },
  serve: {
    allows: 'A route of its own, which the backend handles under the same method and path, answers from this role on.',
    notes: [
      'Without this entry a route answers to viewers if its method is `GET`, and to maintainers for every other '
        + 'method. So a route that writes needs it, if collaborators or viewers are to use it.',
      'The option `floor` of `host.routes.handle` only raises the role. A lower `floor` without this entry has no '
        + 'effect, and is named among its problems (`GET /extensions`, and `sandbox extension review`).',
    ],
    examples: ['serve:collaborator:POST /notes', 'serve:viewer:DELETE /notes/{id}'],
  },
}

/** The resource limits of a backend, of which the page names some. */
export interface ShownLimits {
  readonly startMs: number
  readonly pingMs: number
  readonly heapMiB: number
  readonly resident: number
  readonly openFiles: number
  readonly fileSize: number
  readonly messages: number
  readonly crashes: number
  readonly crashesMs: number
}

const MIB = 1024 * 1024

/** The examples of every kind, each with the list that it stands in. */
export const permissionExamples = (): { readonly list: 'sandbox' | 'daemon'; readonly entry: string }[] =>
  PERMISSION_KINDS.flatMap(({ kind, lists }) =>
    lists.flatMap(list => TEXTS[kind].examples.map(entry => ({ list, entry }))),
  )

const powerOf = (list: 'sandbox' | 'daemon', entry: string): string => {
  const found = readPermission(list, entry)
  if ('expected' in found) throw new Error(`the example ${entry} is wrong: expected ${found.expected}`)
  return found.power.text
}

/** Text with no meaning for Markdown. */
const plain = (text: string): string => text.replaceAll('*', '\\*').replaceAll('_', '\\_')

const section = ({ kind, form, lists, expected }: PermissionKind): string => {
  const { allows, notes, examples } = TEXTS[kind]
  const rows = lists.flatMap(list => examples.map(entry => ({ list, entry, text: powerOf(list, entry) })))
  return `## ${form}

${allows}

Expected: ${plain(expected)}.

${notes.map(note => `- ${note}\n`).join('')}
| Entry | In | The maintainer sees |
| --- | --- | --- |
${rows.map(({ list, entry, text }) => `| \`${entry}\` | \`${list}\` | ${plain(text)} |\n`).join('')}`
}

/** The page that describes the entries of `permissions`, from the code that reads them. */
export const permissionsPage = (limits: ShownLimits): string => `# Permissions of extensions

Written by \`npm run openapi\` from the code that reads these entries.

An extension has what its manifest asks for and a maintainer approved. Its manifest, \`intentic-extension.json\`,
has two lists of at most 100 entries:

\`\`\`json
{ "permissions": { "daemon": ["GET /agents"], "sandbox": ["fs:read:docs/**", "net:api.example.org"] } }
\`\`\`

\`daemon\` names the calls that the backend and the background programs make. \`sandbox\` names the calls that its pages
make, and what the backend reaches of the machine. Each entry is a power: \`sandbox extension review ID\` and the page
Extensions show it as a sentence, and the approval holds for exactly the powers that were shown. A new entry waits for
the next approval.

Each entry has one spelling. One that is spelled otherwise makes the manifest unusable: \`invalid\` of
\`GET /extensions\` says which entry, what was expected and what was found. An entry of \`sandbox\` of no kind below
allows nothing, and is named in \`problems\` of the extension. What an entry would have to allow is refused with the
code \`denied\` and that entry.

${PERMISSION_KINDS.map(section).join('\n')}
## What needs no entry

\`host.log\`, \`host.storage\`, \`host.settings\`, its own schedules, routes and published events, and the folder
\`.sandbox/x/<publisher.name>/\` of the workspace.

## What no backend has

A backend runs behind a wall with Node's permission model inside. There is no network but \`host.fetch\` and
\`host.connect\`, no file but its code (read-only) and its data folder (\`host.dataDir\`), no child process, worker,
native addon or inspector. \`node:sqlite\` is off, because it opens files past the permission model: keep documents in
\`host.storage\`, or use a database that is compiled to JavaScript or WebAssembly.

A maintainer who switches a stopped extension on starts it again.

| Limit | Value |
| --- | --- |
| \`activate\` | ${limits.startMs / 1000} s |
| Answer to a ping | ${limits.pingMs / 1000} s |
| Heap | ${limits.heapMiB} MiB |
| Resident memory | ${limits.resident / MIB} MiB |
| Open files | ${limits.openFiles} |
| One file | ${limits.fileSize / MIB} MiB |
| Messages | ${limits.messages} a second |
| Crashes | ${limits.crashes} within ${limits.crashesMs / 60_000} minutes; then it stays stopped |
`
