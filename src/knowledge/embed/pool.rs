//! From one vector a token to one a text.

use super::{Batch, EmbedError, Output, Pooling};

/// One vector a row of the batch. A model that has its pooling inside answers so already.
pub(super) fn pool(output: &Output, batch: &Batch, pooling: Pooling) -> Result<Vec<Vec<f32>>, EmbedError> {
    let shape = &output.shape;
    let expected: usize = shape.iter().product();
    let odd = || EmbedError::NotAnEncoder {
        why: format!("for {} texts of {} tokens it answers an array of the shape {shape:?}", batch.rows, batch.width),
    };
    if expected != output.values.len() || expected == 0 {
        return Err(odd());
    }
    match shape[..] {
        [rows, dimension] if rows == batch.rows => {
            Ok(output.values.chunks_exact(dimension).map(<[f32]>::to_vec).collect())
        }
        [rows, width, dimension] if rows == batch.rows && width == batch.width => {
            let texts = output.values.chunks_exact(width * dimension).zip(batch.mask.chunks_exact(width));
            Ok(texts.map(|(tokens, mask)| pool_text(tokens, mask, dimension, pooling)).collect())
        }
        _ => Err(odd()),
    }
}

fn pool_text(tokens: &[f32], mask: &[i32], dimension: usize, pooling: Pooling) -> Vec<f32> {
    let used = || tokens.chunks_exact(dimension).zip(mask).filter(|(_, mask)| **mask != 0).map(|(token, _)| token);
    match pooling {
        Pooling::Cls => tokens[..dimension].to_vec(),
        Pooling::LastToken => used().next_back().unwrap_or(&tokens[..dimension]).to_vec(),
        Pooling::Mean => {
            let mut sum = vec![0.0; dimension];
            let mut count = 0.0_f32;
            for token in used() {
                count += 1.0;
                for (sum, value) in sum.iter_mut().zip(token) {
                    *sum += value;
                }
            }
            for value in &mut sum {
                *value /= count.max(1.0);
            }
            sum
        }
    }
}

/// Scales to length 1; a vector of zeros stays.
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in vector {
            *value /= length;
        }
    }
}
