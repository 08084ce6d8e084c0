import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { connection, newsAt } from '../data/live.js'
import { spanText } from './format.js'

const Age = ({ at }: { at: number }) => {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now()
    }, 1_000)
    return () => clearInterval(timer)
  }, [])
  return <p class="age small quiet">This is {spanText(now.value - at)} old.</p>
}

/** How old the data below is, while the connection is lost; `at` is when it was read. */
export const DataAge = ({ at = 0 }: { at?: number | undefined }) =>
  connection.value === 'reconnecting' ? <Age at={Math.max(at, newsAt.value)} /> : null
