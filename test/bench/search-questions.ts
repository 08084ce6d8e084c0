/** A question to one mode of the search, and a file of this repository that answers it. */
export interface SearchQuestion {
  readonly mode: 'q' | 'find' | 'files' | 'def' | 'refs' | 'sym' | 'ast'
  readonly query: string
  readonly answer: string
}

const asked = (mode: SearchQuestion['mode'], ...pairs: readonly (readonly [string, string])[]): SearchQuestion[] =>
  pairs.map(([query, answer]) => ({ mode, query, answer }))

/** The fixed questions that measure the search. */
export const QUESTIONS: readonly SearchQuestion[] = [
  ...asked(
    'def',
    ['sweepTree', 'plugins/workspace/tree/sweep.ts'],
    ['KeyedMutex', 'sdk/node/concurrency/keyed-mutex.ts'],
    ['openPath', 'sdk/node/files/open-path.ts'],
    ['refuse', 'sdk/refusal.ts'],
    ['WorkspaceEntry', 'plugins/workspace/tree/contract.ts'],
    ['runWalled', 'sdk/node/wall/wall.ts'],
    ['keyedmutex', 'sdk/node/concurrency/keyed-mutex.ts'],
    ['BatchReder', 'plugins/git/objects/batch-reader.ts'],
  ),
  ...asked(
    'sym',
    ['class: Semaphore', 'sdk/node/concurrency/semaphore.ts'],
    ['fn: closedAs', 'sdk/node/files/closed-names.ts'],
    ['type: Mount', 'sdk/node/wall/spec.ts'],
    ['IgnoreRul', 'plugins/workspace/tree/ignore-rules.ts'],
    ['folderWatches', 'plugins/workspace/watch/folder-watches.ts'],
  ),
  ...asked(
    'refs',
    ['planZip', 'plugins/workspace/transfer/calls.ts'],
    ['pollFolders', 'plugins/workspace/watch/changes.ts'],
    ['wayOf', 'sdk/node/archives/unpacking.ts'],
    ['lowerPriority', 'sdk/node/programs/run-here.ts'],
    ['distrust', 'sdk/node/programs/own-programs.ts'],
  ),
  ...asked(
    'files',
    ['open-path', 'sdk/node/files/open-path.ts'],
    ['repolocks', 'plugins/git/repositories/repo-locks.ts'],
    ['trash-store.ts', 'plugins/workspace/trash/trash-store.ts'],
    ['wall/bld', 'sdk/node/wall/builders.ts'],
    ['**/watch/gen*.ts', 'plugins/workspace/watch/generations.ts'],
  ),
  ...asked(
    'find',
    ['nothing in the workspace is named', 'sdk/node/files/open-path.ts'],
    ['O_PATH', 'sdk/node/files/open-path.ts'],
    ['MOST_KEPT_PATHS', 'plugins/workspace/watch/generations.ts'],
    ['--unshare-(pid|ipc)', 'sdk/node/wall/builders.ts'],
    ['interface TreeEntryAt', 'plugins/git/objects/tree-entries.ts'],
  ),
  ...asked(
    'ast',
    ['class KeyedMutex { $$$ }', 'sdk/node/concurrency/keyed-mutex.ts'],
    ['symlink($A, $B)', 'sdk/node/archives/unpacking.ts'],
    ['setPriority($$$)', 'sdk/node/programs/priority.ts'],
    ['readlinkSync(`/proc/self/fd/${$A}`)', 'plugins/workspace/tree/sweep.ts'],
  ),
  ...asked(
    'q',
    ['Generations', 'plugins/workspace/watch/generations.ts'],
    ['sdk/node/files/moves.ts', 'sdk/node/files/moves.ts'],
    ['where are private copies created', 'plugins/agent/copies/copies.ts'],
    ['lower the priority of a started program', 'sdk/node/programs/priority.ts'],
    ['which names belong to the sandbox and are closed', 'sdk/node/files/closed-names.ts'],
    ['count changes of a tree in batches', 'plugins/workspace/watch/generations.ts'],
    ['mask stored secret values in text', 'sdk/node/access/masker.ts'],
    ['write a file atomically with a temporary name', 'sdk/node/files/files.ts'],
    ['how is a range of bytes of a file served', 'plugins/workspace/files/bytes.ts'],
    ['poll folders when the system gives no more watches', 'plugins/workspace/watch/polling.ts'],
    ['tickets for downloads without headers', 'plugins/workspace/transfer/tickets.ts'],
    ['limit memory of the programs of a turn', 'sdk/node/limits/limiter.ts'],
  ),
]

/** Questions in words about another part of the repository, written before the ranking was changed. */
export const OTHER_QUESTIONS: readonly SearchQuestion[] = asked(
  'q',
  ['which origins may send requests to the daemon', 'kernel/http/origin.ts'],
  ['answer malformed requests with an error body', 'kernel/http/malformed-request.ts'],
  ['limit how many calls a credential makes in a minute', 'kernel/auth/call-limits.ts'],
  ['read the credential of a request from its headers', 'kernel/auth/credential.ts'],
  ['encrypt stored documents with a key of the machine', 'kernel/storage/seal.ts'],
  ['load the groups in the order of what they need', 'kernel/loader.ts'],
  ['one time code for the first sign in', 'kernel/auth/codes.ts'],
  ['refuse a second daemon on the same data folder', 'kernel/storage/hold-folder.ts'],
  ['wait until a slow client takes more bytes', 'kernel/http/drained.ts'],
  ['uploaded files of a multipart form', 'kernel/http/forms.ts'],
  ['check the manifest of a group', 'kernel/manifest.ts'],
  ['reports about crashes of the process', 'kernel/logs/crash-reports.ts'],
  ['what of an event does a person limited to areas receive', 'kernel/streams/limited.ts'],
  ['detect groups that wait for each other to start', 'kernel/waits.ts'],
  ['completion script for the shell', 'sdk/cli/verbs/completion.ts'],
  ['ask for a password without showing it', 'sdk/cli/terminal/hidden.ts'],
  ['parse a duration such as 30d', 'sdk/cli/terminal/when.ts'],
  ['start the daemon when the machine boots', 'sdk/cli/daemon/service-manager.ts'],
  ['are colours used in the output', 'sdk/cli/terminal/appearance.ts'],
  ['fuzzy list of commands opened by a key', 'plugins/console/web/ui/shell/palette.tsx'],
  ['unsent text of the composer is kept', 'plugins/console/web/data/drafts.ts'],
  ['remove control sequences of a terminal from text', 'plugins/console/web/run/ansi.ts'],
  ['compare lines of two texts', 'plugins/console/web/run/line-diff.ts'],
  ['fingerprint of the types of a call', 'openapi/shapes.ts'],
)

/** Questions in other words than the code's, written from the names of files before files were compared by meaning. */
export const PARAPHRASED: readonly SearchQuestion[] = asked(
  'q',
  ['try an api key that somebody entered before it is saved', 'plugins/accounts/provider-key.ts'],
  ['cut long command results short', 'plugins/agent/outputs/shorten.ts'],
  ['stop waiting once a deadline has passed', 'plugins/agent/turn/timeout-after.ts'],
  ['name for a new branch', 'plugins/agent/copies/branch-name.ts'],
  ['time zone and daylight saving of recurring jobs', 'plugins/automations/schedule/clock.ts'],
  ['find unused code and dependencies', 'plugins/chores/probes/knip.ts'],
  ['unmount a network share', 'plugins/disks/machine/detaching.ts'],
  ['mount an nfs export', 'plugins/disks/servers/nfs.ts'],
  ['command line that launches the llm server', 'plugins/endpoints/local/server-command.ts'],
  ['throttle a chatty plugin process', 'plugins/extensions/backend/process/pace.ts'],
  ['repositories that are corrupt', 'plugins/git/repositories/damaged.ts'],
  ['push a branch to github', 'plugins/git/remotes/publishing.ts'],
  ['put uncommitted changes aside', 'plugins/git/stash/calls.ts'],
  ['undo to an earlier snapshot', 'plugins/history/restoring.ts'],
  ['throttle incoming crash events', 'plugins/issues/ingest/limits.ts'],
  ['old log files get deleted', 'plugins/logs/upkeep.ts'],
  ['merge requests and ci status from gitlab', 'plugins/pipelines/forges/gitlab.ts'],
  ['page title of a running dev server', 'plugins/ports/scan/titles.ts'],
  ['who gets a notification', 'plugins/push/recipients.ts'],
  ['credit card number detection', 'plugins/shield/detect/number-scans.ts'],
  ['encrypt an export archive with a passphrase', 'plugins/system/bundles/cipher.ts'],
  ['disk space that browser profiles may take', 'plugins/system/browsers/quota.ts'],
  ['roster of people with access', 'plugins/system/access/members.ts'],
  ['parse streamed json from ollama', 'plugins/agent/providers/native/ollama-lines.ts'],
  ['pick up an interrupted git operation after a crash', 'plugins/git/operations/recovery.ts'],
)
