import t from 'tap'
import { probeCalls } from './properties.js'

probeCalls(t, 'properties-second')
