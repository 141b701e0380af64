use proptest::prelude::*;

use super::*;

fn table(rows: &[Vec<f32>], dimension: usize) -> CodeTable {
    let mut table = CodeTable::new(dimension);
    for row in rows {
        let (scale, numbers) = to_numbers(row);
        table.push(&numbers, scale);
    }
    table
}

proptest! {
    /// The fast product must be the plain one, for all numbers that can occur, also the extreme ones.
    #[test]
    fn fast_and_plain_products_agree(
        pairs in proptest::collection::vec((-127_i8..=127, -2047_i16..=2047), 1..40),
        repeat in 1_usize..60,
    ) {
        let mut row: Vec<i8> = pairs.iter().map(|pair| pair.0).collect::<Vec<_>>().repeat(repeat);
        let mut query: Vec<i16> = pairs.iter().map(|pair| pair.1).collect::<Vec<_>>().repeat(repeat);
        let padded = row.len().next_multiple_of(LANES);
        row.resize(padded, 0);
        query.resize(padded, 0);
        prop_assert_eq!(fastest_dot()(&row, &query), dot_plain(&row, &query));
    }

    /// Against the scan of the full numbers: what is found scores as it should, and nothing clearly better is missed.
    #[test]
    fn the_scan_finds_what_the_naive_one_finds(
        dimension in 1_usize..70,
        rows in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 70), 1..60),
        query in proptest::collection::vec(-1.0_f32..1.0, 70),
        top in 1_usize..12,
    ) {
        let rows: Vec<Vec<f32>> = rows.into_iter().map(|row| row[..dimension].to_vec()).collect();
        let query = &query[..dimension];
        let exact: Vec<f32> =
            rows.iter().map(|row| row.iter().zip(query).map(|(a, b)| a * b).sum()).collect();
        // Half a step of the byte times the numbers of the question, and as much again for the question's own rounding.
        let slack = 0.01 * query.iter().map(|value| value.abs()).sum::<f32>() + 1e-3;
        let found = table(&rows, dimension).nearest(query, top);
        prop_assert_eq!(found.len(), top.min(rows.len()));
        for (row, score) in &found {
            prop_assert!((score - exact[*row]).abs() <= slack, "row {}: {} for {}", row, score, exact[*row]);
        }
        let worst = found.iter().map(|(row, _)| exact[*row]).fold(f32::INFINITY, f32::min);
        for (row, score) in exact.iter().enumerate() {
            let is_in = found.iter().any(|(found, _)| *found == row);
            prop_assert!(is_in || *score <= worst + 2.0 * slack, "row {} with {} was missed", row, score);
        }
    }

    /// The stored numbers give the vector back to four digits: that is what rescoring rests on.
    #[test]
    fn stored_numbers_are_nearly_exact(row in proptest::collection::vec(-1.0_f32..1.0, 1..800), seed in 0_u64..1000) {
        let query: Vec<f32> = (0..row.len()).map(|at| ((at as u64 * 37 + seed) % 19) as f32 / 9.0 - 1.0).collect();
        let exact: f32 = row.iter().zip(&query).map(|(a, b)| a * b).sum();
        let (scale, numbers) = to_numbers(&row);
        prop_assert!((exact_dot(&numbers, scale, &query) - exact).abs() < 3e-5 * row.len() as f32);
    }
}

/// Sums at the very end of what can occur must not overflow: 8192 dimensions of the largest numbers.
#[test]
fn the_largest_sums_fit() {
    let row = vec![127_i8; 8192];
    let query = vec![2047_i16; 8192];
    assert_eq!(fastest_dot()(&row, &query), 127 * 2047 * 8192);
}

/// Many rows are shared among threads; that must not change what is found, nor its order, even with equal rows.
#[test]
fn threads_change_nothing() {
    let dimension = 64;
    let rows = 3 * BYTES_A_THREAD / dimension;
    let mut codes = CodeTable::new(dimension);
    for row in 0..rows {
        let (scale, numbers) = to_numbers(&[(row % 977) as f32 - 488.0, 1.0]);
        let mut padded = numbers;
        padded.resize(dimension * 2, 0);
        codes.push(&padded, scale);
    }
    let mut query = vec![0.0; dimension];
    query[0] = 1.0;
    let (query_scale, numbers) = codes.quantised(&query);
    let mut alone = codes.scan(0, rows, &numbers, query_scale, 50, dot_plain);
    alone.sort();
    let together = codes.nearest(&query, 50);
    assert_eq!(together, alone.iter().map(|candidate| (candidate.row, candidate.score)).collect::<Vec<_>>());
    assert!(together.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0)));
}

/// A vector of zeros (a text that says nothing) is stored and scores zero.
#[test]
fn zeros_are_no_trouble() {
    let table = table(&[vec![0.0; 5], vec![1.0; 5]], 5);
    assert_eq!(table.nearest(&[1.0; 5], 2)[1], (0, 0.0));
    assert_eq!(table.nearest(&[0.0; 5], 2).len(), 2);
}
