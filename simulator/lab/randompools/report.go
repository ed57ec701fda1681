package randompools

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/simulator"
)

// Report is how a policy did on random pools.
type Report struct {
	Policy string  `json:"policy"`
	Family string  `json:"family"`
	Seed   uint64  `json:"seed"`
	Hours  float64 `json:"hours"` // of each pool
	// Metrics is how all pools were observed, as --metrics says. Empty: as drawn.
	Metrics string `json:"metrics,omitempty"`
	// Command repeats a pool; its number follows.
	Command       string   `json:"command"`
	WithReference bool     `json:"with_reference"`
	All           Summary  `json:"all"`
	Groups        []Group  `json:"groups"`
	Records       []Record `json:"records"` // by number
	// Failures are the pools that are in no figure, because they could not be drawn or run.
	Failures []Failure `json:"failures,omitempty"`
}

// Err returns an error if some pools have no result.
func (r *Report) Err() error {
	if len(r.Failures) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d pools failed; the report lists them and is of the others",
		len(r.Failures), len(r.Failures)+len(r.Records))
}

// Group is the pools with the same value of a dimension.
type Group struct {
	Dimension string `json:"dimension"`
	Value     string `json:"value"`
	Summary
}

// Summary is the distribution of losses and harvests of some pools. Shares are of all of them,
// unless a field says otherwise.
type Summary struct {
	Pools int `json:"pools"`
	// MeanLoss and MaxLoss are in points.
	MeanLoss float64 `json:"mean_loss_points"`
	MaxLoss  float64 `json:"max_loss_points"`
	// Over05, Over1 and Over2 are the shares with a loss above so many points.
	Over05 float64 `json:"share_above_0.5"`
	Over1  float64 `json:"share_above_1"`
	Over2  float64 `json:"share_above_2"`
	// Over10In5Minutes is the share that lose above ten points in some five minutes; Max5Minutes is
	// the largest such loss.
	Over10In5Minutes float64 `json:"share_above_10_in_5_minutes"`
	Max5Minutes      float64 `json:"max_5_minutes_loss_points"`
	// Compared is the number of pools whose reference harvests something. HarvestRatio is the
	// geometric mean of the harvest relative to it, of SafeRatio only where the policy is safe too.
	// WellEnough is the share of compared pools where the policy is safe and harvests at least 0.9
	// of it.
	Compared     int     `json:"compared_pools"`
	HarvestRatio float64 `json:"harvest_ratio"`
	SafeRatio    float64 `json:"harvest_ratio_where_safe"`
	WellEnough   float64 `json:"share_safe_with_0.9_of_harvest"`
	// NothingStatic is the number of pools where no static setting is safe; the policy harvests
	// something there and is safe in Harvested of them.
	NothingStatic int `json:"pools_without_safe_static_setting"`
	Harvested     int `json:"of_those_harvested_safely"`
	// Reruns is the number of compared pools whose static setting was run again with another seed.
	// The figures after it are those of such runs; RerunHarvest is the geometric mean of the
	// harvest relative to that of the run for which the setting was chosen.
	Reruns        int     `json:"reruns_of_static_settings"`
	RerunMeanLoss float64 `json:"rerun_mean_loss_points"`
	RerunMaxLoss  float64 `json:"rerun_max_loss_points"`
	RerunOver1    float64 `json:"rerun_share_above_1"`
	RerunOver2    float64 `json:"rerun_share_above_2"`
	RerunHarvest  float64 `json:"rerun_harvest_ratio"`
	// WithOracle is the number of pools where oracle G harvests something and the policy is safe.
	// OracleRatio is the geometric mean of the harvest relative to it.
	WithOracle  int     `json:"pools_with_oracle"`
	OracleRatio float64 `json:"harvest_of_oracle_g"`
	// Harvest is the sum, in useful tokens.
	Harvest int64 `json:"harvest_tokens"`
}

// summarize fills in the summaries.
func (r *Report) summarize() {
	r.All, r.Groups = summaryOf(r.Records), nil
	if len(r.Records) == 0 {
		return
	}
	for i, d := range r.Records[0].Dimensions {
		byValue := map[string][]Record{}
		var values []string
		for _, record := range r.Records {
			value := record.Dimensions[i].Value
			if byValue[value] == nil {
				values = append(values, value)
			}
			byValue[value] = append(byValue[value], record)
		}
		slices.SortFunc(values, func(a, b string) int {
			return cmp.Compare(summaryOf(byValue[b]).MeanLoss, summaryOf(byValue[a]).MeanLoss)
		})
		for _, value := range values {
			r.Groups = append(r.Groups, Group{d.Name, value, summaryOf(byValue[value])})
		}
	}
}

func summaryOf(records []Record) Summary {
	s := Summary{Pools: len(records)}
	if len(records) == 0 {
		return s
	}
	var ratios, safeRatios, oracleRatios []float64
	var over05, over1, over2, over10, well int
	s.MaxLoss, s.Max5Minutes = records[0].Loss, records[0].WorstLoss
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	for _, r := range records {
		s.MeanLoss += r.Loss / float64(len(records))
		s.MaxLoss, s.Max5Minutes = max(s.MaxLoss, r.Loss), max(s.Max5Minutes, r.WorstLoss)
		count(&over05, r.Loss > 0.5)
		count(&over1, !r.safe())
		count(&over2, r.Loss > 2)
		count(&over10, r.WorstLoss > worstLimit)
		s.Harvest += r.Harvest
		if r.Oracle > 0 && r.safe() {
			oracleRatios = append(oracleRatios, max(minRatio, float64(r.Harvest)/
				float64(r.Oracle)))
		}
		if ratio, known := r.ratio(); known {
			ratios = append(ratios, ratio)
			if r.safe() {
				safeRatios = append(safeRatios, ratio)
			}
			count(&well, r.safe() && ratio >= wellEnough)
		} else if r.Reference != nil {
			s.NothingStatic++
			count(&s.Harvested, r.safe() && r.Harvest > 0)
		}
	}
	s.addReruns(records)
	s.WithOracle = len(oracleRatios)
	if len(oracleRatios) > 0 {
		s.OracleRatio = simulator.GeometricMean(oracleRatios)
	}
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	s.Over05, s.Over1, s.Over2 = share(over05, s.Pools), share(over1, s.Pools),
		share(over2, s.Pools)
	s.Over10In5Minutes = share(over10, s.Pools)
	s.Compared, s.WellEnough = len(ratios), share(well, len(ratios))
	if len(ratios) > 0 {
		s.HarvestRatio = simulator.GeometricMean(ratios)
	}
	if len(safeRatios) > 0 {
		s.SafeRatio = simulator.GeometricMean(safeRatios)
	}
	return s
}

// addReruns fills in what static settings did in other runs than those they were chosen for.
func (s *Summary) addReruns(records []Record) {
	var losses, ratios []float64
	over1, over2 := 0.0, 0.0
	for _, r := range records {
		if _, known := r.ratio(); !known || r.Reference.Rerun == nil {
			continue
		}
		again := r.Reference.Rerun
		losses = append(losses, again.Loss)
		ratios = append(ratios, max(minRatio,
			float64(again.Harvest)/float64(r.Reference.Harvest)))
		if again.Loss > safeLoss {
			over1++
		}
		if again.Loss > 2 {
			over2++
		}
	}
	n := float64(len(losses))
	if s.Reruns = len(losses); n == 0 {
		return
	}
	for _, loss := range losses {
		s.RerunMeanLoss += loss / n
	}
	s.RerunMaxLoss, s.RerunOver1, s.RerunOver2 = slices.Max(losses), over1/n, over2/n
	s.RerunHarvest = simulator.GeometricMean(ratios)
}

// worst is the number of pools that the report lists with the largest losses and the smallest
// harvests.
const worst = 10

// worstByLoss returns the pools with the largest losses.
func (r *Report) worstByLoss() []Record {
	sorted := slices.SortedStableFunc(slices.Values(r.Records), func(a, b Record) int {
		return cmp.Compare(b.Loss, a.Loss)
	})
	return sorted[:min(worst, len(sorted))]
}

// worstByHarvest returns the pools with the smallest harvests relative to their references.
func (r *Report) worstByHarvest() []Record {
	compared := slices.DeleteFunc(slices.Clone(r.Records), func(record Record) bool {
		_, known := record.ratio()
		return !known
	})
	slices.SortStableFunc(compared, func(a, b Record) int {
		x, _ := a.ratio()
		y, _ := b.ratio()
		return cmp.Compare(x, y)
	})
	return compared[:min(worst, len(compared))]
}
