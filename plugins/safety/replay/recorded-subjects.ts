import type { BriefAllow } from '../log/brief-allows.js'
import type { StoredVerdict } from '../log/verdict-log.js'
import type { RecordedSubject } from './replay.js'

const CUT_ENTRY = 2_000
const CUT_BRIEF = 500

/** What was decided since a time, newest first. */
export const recordedSubjects = (
  entries: readonly StoredVerdict[],
  allows: readonly BriefAllow[],
  since: number,
): RecordedSubject[] => {
  const decided = entries.map(
    ({ at, id, subject, conversationId, persona, unattended, outside, verdict, judge, judgedBy }): RecordedSubject => ({
      at,
      id,
      subject,
      unattended,
      was: verdict,
      ...(conversationId !== undefined && { conversationId }),
      ...(persona !== undefined && { persona }),
      ...(outside !== undefined && { outside }),
      ...(subject.text.length >= CUT_ENTRY && { cut: true }),
      ...(judge && { judge }),
      ...(judgedBy !== undefined && { judgedBy }),
    }),
  )
  const allowed = allows.map(({ classes: _, ...allow }): RecordedSubject => ({
    ...allow,
    was: 'allow',
    ...(allow.subject.text.length >= CUT_BRIEF && { cut: true }),
  }))
  return [...decided, ...allowed].filter(({ at }) => at >= since).sort((one, other) => other.at - one.at)
}
