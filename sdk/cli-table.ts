/**
 * How a value is shown; by default its field's name says so: `…At` is a time, `…Usd` money, `…Bytes` a size.
 *
 * `prose` becomes one line; other texts show a line break as `\n`, since names may have them, too. `past` is a time
 * that is over, even if the clock of another machine is behind.
 */
export type CliForm =
  | 'text'
  | 'prose'
  | 'time'
  | 'past'
  | 'money'
  | 'size'
  | 'duration'
  | 'seconds'
  | 'percent'
  | 'number'

/** One value of an answer, as people read it. */
export interface CliColumn {
  /** Its field; `a.b` is a field of a field, `a.length` the length of a list. The first one with a value counts. */
  readonly field: string | readonly string[]
  readonly as?: CliForm
  /** What stands for a value, such as `waits for you` for `open`; may name fields, and `{sandbox}`, as `done` does. */
  readonly words?: { readonly [value: string]: string }
  /** A sentence that stands for the value, by its field: `{doneBytes} of {sizeBytes}`; places are those of `done`. */
  readonly text?: { readonly [field: string]: string }
  /** Of a list its last entry in which this field is true is the value; places of `text` are fields of that entry. */
  readonly last?: string
  /** What stands for no value. */
  readonly none?: string
  /** What stands for an empty list; default: what stands for no value. */
  readonly empty?: string
  /** The column is left out of a table in which no entry has a value. */
  readonly optional?: true
  /** The most characters; default: 60 in a table. */
  readonly most?: number
}

/** Values by title; a text is the field alone, a list the first of its fields that has a value. */
export interface CliColumns {
  readonly [title: string]: string | readonly string[] | CliColumn
}

/** A sentence for each entry of a list. */
export interface CliSentence {
  /** The field that holds the list; `a.b` is the list of each entry of a list; empty: the answer itself. */
  readonly rows: string
  /** Only entries in which this field has a value. */
  readonly if?: string
  /** With the fields of the entry, of the input, and, as `of.`, of what the entry belongs to. */
  readonly text: string
  /** Only the first of them. */
  readonly first?: true
}

/** A flag whose name, value or meaning differs from the field that it sets. */
export interface CliFlag {
  /** Its name without dashes; default: the field's. */
  readonly name?: string
  /** The placeholder of its value. */
  readonly value?: string
  readonly help?: string
  /** Makes the field's value of the flag's text. */
  readonly of?: (text: string) => unknown
}

/** Fields of an input, by name. */
export interface CliInput {
  readonly [field: string]: unknown
}

/** One verb of a group: a call, and how people give it its input and read its answer. */
export interface CliVerb<Call extends string = string> {
  /** Method and path. */
  readonly call: Call
  /** Its stream does something each time that it is asked for: one that is cut is not asked for again. */
  readonly once?: true
  /** The fields that are given by their place, at most two; all others are flags. Default: the parts of the path. */
  readonly args?: readonly [] | readonly [string] | readonly [string, string]
  readonly flags?: { readonly [field: string]: CliFlag }
  /** Adds what nobody gave. */
  readonly fill?: (input: CliInput) => CliInput
  /** Which verb of the group lists the values of a field, for completion; default: what the bare group lists. */
  readonly ids?: { readonly [field: string]: string }
  /**
   * The field of the answer that is the list to show, or several that are one list; empty: the answer itself. Default:
   * the answer is one thing.
   */
  readonly rows?: string | readonly string[]
  /** The field with the number of all entries, and what is said if not all are listed: `{left}` more. */
  readonly total?: { readonly field: string; readonly text: string }
  /** The list is shown from its end, the first entry last. */
  readonly reversed?: true
  /** Entries whose field has this value are left out of the list. */
  readonly without?: { readonly [field: string]: string }
  /** The columns of the list; of one thing its lines. */
  readonly columns?: CliColumns
  /** Each entry of the list is shown as lines, with all its text, instead of as a row. */
  readonly blocks?: true
  /** Lines below a list, about the whole answer. */
  readonly more?: CliColumns
  /** Sentences above and below a list, about its entries or the whole answer. */
  readonly above?: readonly CliSentence[]
  readonly below?: readonly CliSentence[]
  /** Lists of one thing, each below its title. */
  readonly lists?: { readonly [title: string]: { readonly rows: string; readonly columns: CliColumns } }
  /** What is said of an empty list. `{sandbox}` is the command itself. */
  readonly none?: string
  /**
   * What a change has done: `removed {id}`, with fields of input and answer; `{on?switched on:switched off}` chooses,
   * and `{files#file}` is a number with its noun.
   */
  readonly done?: string
  /** What is said of each event of a stream, by its `kind`; others are shown as JSON. */
  readonly events?: { readonly [kind: string]: string }
  /** Example commands after the group's name; the first is shown first. */
  readonly examples?: readonly string[]
}

/** What an answer with status 200 says when its call did not do what was asked for. */
export interface CliFailure {
  /** The field that says so; `a.b` is a field of a field, or of each entry of a list; empty: the answer itself. */
  readonly field: string
  /** Its values that say so; default: false, and each text, object and entry of a list. */
  readonly is?: readonly (string | number | boolean)[]
  /** The sentence, with fields of what holds the field and, as `of.`, of what that belongs to; default: its reason. */
  readonly text?: string
  /** A decision, not a fault: the sandbox said no. */
  readonly refused?: true
}

/** The verbs of a group, beside its contract. Calls without a verb here are commands under their own name. */
export interface CliTable<Calls = { readonly [call: string]: unknown }> {
  /** What the group's name alone does: the name of a verb that lists. */
  readonly bare: string
  readonly verbs: { readonly [name: string]: CliVerb<Extract<keyof Calls, string>> }
  /** Calls whose answer may say that they failed; `FAILURES` in `sdk/cli/calls/failures.ts` has the fields of all. */
  readonly failures?: { readonly [call in Extract<keyof Calls, string>]?: CliFailure | readonly CliFailure[] }
  /** Calls for programs, which help and completion leave out. */
  readonly hidden?: readonly Extract<keyof Calls, string>[]
}
