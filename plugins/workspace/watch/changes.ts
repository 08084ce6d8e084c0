import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { accessTo, refuse, type Host, ignored } from '../../../sdk/index.js'
import type { FrameForms } from '../../../sdk/kernel.js'
import { WorkspacePaths } from '../../../sdk/node/files/workspace-paths.js'
import { placesOfConversation } from '../../../sdk/node/access/conversation-reach.js'
import type { CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { ChangedPaths } from './contract.js'
import { FolderWatches } from './folder-watches.js'
import { Generations, type ChangeBatch } from './generations.js'
import { pollFolders } from './polling.js'

const MOST_SENT = 200
const MOST_ANSWERED = 2_000
const COPY_MS = 600_000
const FOLDERS_MS = 250

/** Removes a temporary file of an earlier daemon; copies keep their mtime, so ctime decides. */
const removeLeftover = async (place: string): Promise<void> => {
  const found = await lstat(place)
  if (found.ctimeMs < performance.timeOrigin) await rm(place, { recursive: true, force: true })
}

/** The watch of one tree. */
class TreeWatch {
  readonly generations: Generations
  readonly #watches: FolderWatches
  #polling: (() => void) | undefined
  /** Resolves when all further changes are detected. */
  readonly ready: Promise<void>
  usedAt = Date.now()

  /** @param folders Called when folders, or git folders in them, came or went. */
  constructor(root: string, publish: (batch: ChangeBatch) => void, folders: () => void) {
    this.generations = new Generations({ start: Date.now(), publish })
    const lost = () => this.generations.reset()
    this.#watches = new FolderWatches({
      root,
      changed: paths => this.generations.add(paths),
      folders,
      lost,
      exhausted: () => {
        this.#watches.stop()
        this.#polling ??= pollFolders(root, lost)
      },
      temporary: path => removeLeftover(join(root, path)).catch(ignored('the next start removes it')),
    })
    this.ready = this.#watches.start()
  }

  get watch(): 'live' | 'polling' {
    return this.#polling ? 'polling' : 'live'
  }

  stop(): void {
    this.#watches.stop()
    this.#polling?.()
    this.generations.stop()
  }
}

/** Watches the shared tree, and private copies while they are read, and publishes what changes in them. */
export class WorkspaceChanges {
  readonly #host: Pick<Host, 'call' | 'emit' | 'place' | 'log' | 'signal'>
  readonly #trees = new Map<string, TreeWatch>()
  #folders: NodeJS.Timeout | undefined

  constructor(host: Pick<Host, 'call' | 'emit' | 'place' | 'log' | 'signal'>) {
    this.#host = host
    const sweeper = setInterval(() => this.#sweep(), COPY_MS / 10).unref()
    host.signal.addEventListener(
      'abort',
      () => {
        clearInterval(sweeper)
        for (const tree of this.#trees.values()) tree.stop()
        this.#trees.clear()
      },
      { once: true },
    )
  }

  /** The generation of a tree from which on no change is missed, and how they are found. */
  async now(tree: CallerTree): Promise<{ generation: number; watch: 'live' | 'polling' }> {
    const { generations, watch } = await this.#watching(tree)
    generations.close()
    return { generation: generations.generation, watch }
  }

  /** The paths of a tree that changed after a generation and that the caller may see. */
  async since(tree: CallerTree, since: number): Promise<ChangedPaths> {
    const { generations } = await this.#watching(tree)
    const paths = generations.since(since)?.filter(path => accessTo(tree.reach, path) !== undefined)
    const { generation } = generations
    if (since > generation)
      refuse('invalid', `since: expected at most the present generation ${generation}, found ${since}`, {
        errors: [{ path: 'since', expected: `at most ${generation}`, value: String(since) }],
      })
    const reset = paths === undefined || paths.length > MOST_ANSWERED
    return { since, generation, paths: reset ? [] : paths, reset }
  }

  /** Reports changed paths of the shared tree, before the system does. */
  note(paths: readonly string[]): void {
    this.#trees.get('')?.generations.add(paths)
  }

  async #watching({ root, conversationId = '' }: CallerTree): Promise<TreeWatch> {
    const known = this.#trees.get(conversationId)
    const tree =
      known
      ?? new TreeWatch(
        root,
        batch => this.#publish(conversationId, batch),
        () => conversationId === '' && this.#foldersChanged(),
      )
    tree.usedAt = Date.now()
    this.#trees.set(conversationId, tree)
    await tree.ready
    return tree
  }

  /** Notifies the other groups, 250 ms after the first change, that folders came or went. */
  #foldersChanged(): void {
    this.#folders ??= setTimeout(() => {
      this.#folders = undefined
      if (!this.#host.signal.aborted) this.#host.emit('folders.changed', {})
    }, FOLDERS_MS).unref()
  }

  #sweep(): void {
    for (const [id, tree] of this.#trees) {
      if (id === '' || tree.usedAt > Date.now() - COPY_MS) continue
      tree.stop()
      this.#trees.delete(id)
    }
  }

  #publish(conversationId: string, batch: ChangeBatch): void {
    void this.#show(conversationId, batch).catch(
      error => this.#host.signal.aborted || this.#host.log.warn('publishing changes failed', { error: String(error) }),
    )
  }

  async #show(conversationId: string, { since, generation, paths, reset }: ChangeBatch): Promise<void> {
    if (conversationId === '') this.#host.emit('files.changed', { generation })
    const whole = reset || paths.length > MOST_SENT
    const data = {
      kind: 'workspaceChanged' as const,
      paths: whole ? [] : [...paths],
      since,
      generation,
      ...(whole && { reset: true as const }),
      ...(conversationId !== '' && { conversationId }),
    }
    const list = { field: 'paths', items: data.paths.map(path => [{ within: [path], value: path }]) }
    const limited = conversationId === '' ? { list } : await this.#limitedTo(conversationId, data, list)
    await this.#host.call('kernel.events.show', { frames: [{ data, ...(limited && { limited }) }] })
  }

  /** Changes of a private copy go only to people who see its conversation. */
  async #limitedTo(id: string, value: object, list: FrameForms['list'] & {}): Promise<FrameForms | undefined> {
    const state = await this.#host.call('agent.conversation', { id }).catch(() => undefined)
    const within =
      state && (await placesOfConversation(new WorkspacePaths(this.#host.place.workspace), state.conversation))
    return within && { forms: [{ within, value }], list }
  }
}
