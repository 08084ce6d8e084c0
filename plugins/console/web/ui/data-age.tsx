import { connection, newsAt } from '../data/live.js'
import { spanText } from './format.js'
import { useNow } from './now.js'

const Age = ({ at }: { at: number }) => <p class="age small quiet">This is {spanText(useNow() - at)} old.</p>

/** How old the data below is, while the connection is lost; `at` is when it was read. */
export const DataAge = ({ at = 0 }: { at?: number | undefined }) =>
  connection.value === 'reconnecting' ? <Age at={Math.max(at, newsAt.value)} /> : null
