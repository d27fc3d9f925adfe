import { needle } from "./a.js";
