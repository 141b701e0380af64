//! Matching and slots with values: no Slicer, no files but the recipes themselves.

use super::*;
