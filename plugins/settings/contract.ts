import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Ok } from '../../sdk/types.js'

/** How agents behave in this sandbox: the settings that the sandbox honours. */
export interface Settings {
  /** Days without activity until a finished conversation is put away, 3 unless set; 0: never. */
  agentRetentionDays: number & tags.Minimum<0> & tags.Maximum<365>
  /** Go on by itself with a turn that a restart of the sandbox cut off; off unless set. */
  autoResumeOnRestart: boolean
  /** Run a turn that an outage of its provider ended again, once the provider may be back; off unless set. */
  resumeAfterOutage: boolean
  /** Helpers of one turn that may be at work at once, 20 unless set. */
  subagentsAtOnce: number & tags.Minimum<1> & tags.Maximum<200>
  /** Helpers that one turn may have in all, 200 unless set. */
  subagentsPerTurn: number & tags.Minimum<1> & tags.Maximum<2000>
  /** How deep helpers may start helpers of their own, 3 unless set. */
  subagentDepth: number & tags.Minimum<1> & tags.Maximum<10>
  /**
   * What the programs of a conversation are in, from its next turn: `own` unless set, a network of its own whose ways
   * out are the daemon's; `shared`: the network of the machine.
   */
  network: 'own' | 'shared'
  /**
   * What conversations reach beside public addresses, from the next connection: `host[:port]`, none unless set.
   *
   * A host is a name, `*.` and a name, an address, or a network such as `10.1.0.0/16`. `localhost:5432` is a port of
   * the machine, which answers inside at the same port. Other than that nothing of the machine itself is opened by a
   * name.
   */
  networkAllow: (string & tags.MinLength<1> & tags.MaxLength<260>)[] & tags.MaxItems<200>
  /** Conversations reach nothing but what `networkAllow` names, from the next connection; off unless set. */
  networkOnly: boolean
}
/** Settings to write; a key that is none of them is refused. */
export interface SettingsGiven extends Partial<Settings> {}
export type SettingKey = keyof Settings

export interface SettingsCalls {
  /**
   * Read every setting.
   *
   * The default stands in for a key that is not kept, and for one a person wrote that does not fit. The tag of the
   * answer is the revision of the settings.
   */
  'GET /settings'(): Settings

  /**
   * Write the settings whole: a key left out takes its default.
   *
   * With `if-match: <tag of an earlier answer>` nothing is written when the settings have changed since. A turn that
   * runs keeps what it started with, but for what it may reach. Keys of the file that are no settings here stay as they
   * are.
   *
   * - 400: an unknown key, a value that does not fit, or an entry of `networkAllow` that may not
   *   be allowed
   * - 409: `if-match` names another revision; nothing was written
   * - 422: the file of settings cannot be read, or its folder is none
   * - 424: the file of settings could not be written; the message says why
   */
  'POST /settings'(input: SettingsGiven): Ok

  /**
   * Change only the keys in `set`, return those in `unset` to their defaults, and read every setting.
   *
   * Changes of different keys never lose each other. With `revision`, as an earlier answer gave it (the tag of a read
   * without its quotes), nothing is written when the settings have changed since.
   *
   * - 400: an unknown key, a value that does not fit, or a key in both `set` and `unset`
   * - 409: the settings have another revision; nothing was written
   * - 422: the file of settings cannot be read, or its folder is none
   * - 424: the file of settings could not be written; the message says why
   */
  'POST /settings/patch'(input: { set?: SettingsGiven; unset?: SettingKey[]; revision?: string }): {
    settings: Settings
    revision: string
  }

  /** Read every setting as it holds now: at the start of a turn, and wherever one decides. */
  'settings.get'(): Settings
}

export interface SettingsEvents {
  /** Other values hold. Without `by` a person changed the file, which is told when it is next read. */
  'settings.changed': { keys: SettingKey[]; by?: string }
}

/** A read takes any query. */
interface Read {
  call: 'GET /settings' | 'settings.get'
  input: { [key: string]: unknown }
}
type Write = Requests<Pick<SettingsCalls, 'POST /settings' | 'POST /settings/patch'>>

export const settings: Contract<SettingsCalls> = {
  schema: () => typia.json.application<SettingsCalls>(),
  request: typia.createValidateEquals<Read | Write>(),
  reply: () => typia.createValidate<Replies<SettingsCalls>>(),
}
