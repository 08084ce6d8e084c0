import { unseenBut } from '../../../sdk/unseen.js'

const UNSEEN = unseenBut('')

/** A name as people see it: on one line, without characters that nobody sees. */
export const visitorName = (text: string): string => text.normalize('NFC').replace(UNSEEN, '').trim()
