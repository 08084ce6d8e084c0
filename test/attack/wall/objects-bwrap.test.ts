import { objectsHold } from './objects-users.js'

objectsHold('bwrap')
