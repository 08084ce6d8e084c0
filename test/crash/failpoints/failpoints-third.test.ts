import t from 'tap'
import { runCases } from './failpoint-cases.js'

runCases(t, 'failpoints-third')
