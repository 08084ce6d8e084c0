import type { ScriptVerb } from './verb.js'
import { absent } from './verbs/absent.js'
import { accounting } from './verbs/accounting.js'
import { asking } from './verbs/asking.js'
import { failing } from './verbs/failing.js'
import { files } from './verbs/files.js'
import { helping } from './verbs/helping.js'
import { offers } from './verbs/offers.js'
import { running } from './verbs/running.js'
import { standing } from './verbs/standing.js'
import { verdicts } from './verbs/verdict.js'
import { sayingVerbs } from './verbs/words.js'

/** The language: every verb but `repeat`, which is a way to say another one. */
export const verbs: ReadonlyMap<string, ScriptVerb> = new Map(
  [sayingVerbs, files, running, helping, asking, offers, standing, accounting, verdicts, failing, absent].flatMap(
    group => Object.entries(group),
  ),
)
